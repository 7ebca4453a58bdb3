"""Tests of domain_store.staging."""
