"""Tests of domain_store.reading."""
