"""The SQL ledger of feeds and articles."""
