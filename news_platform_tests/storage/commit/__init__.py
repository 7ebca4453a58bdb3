"""Tests of storage.commit."""
