"""The SQL ledger: engine, migrations and leases."""
