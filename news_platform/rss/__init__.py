"""Discover and poll feeds, fetch their articles, and keep everything in a SQL ledger."""
