"""Tests of domain_metadata."""
