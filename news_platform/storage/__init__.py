"""Storage of datasets: object stores, the commit protocol, Parquet and the SQL ledger."""
