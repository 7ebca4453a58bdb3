"""Tests of storage.objects."""
