"""Tests of domain_store.building."""
