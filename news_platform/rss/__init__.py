"""Feeds in, articles out; a SQL ledger is the truth and a sheet is its view."""
