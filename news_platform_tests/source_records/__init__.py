"""Tests of source records."""
