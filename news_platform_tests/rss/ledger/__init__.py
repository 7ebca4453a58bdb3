"""Tests of rss.ledger."""
