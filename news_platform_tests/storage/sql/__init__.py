"""Tests of storage.sql."""
