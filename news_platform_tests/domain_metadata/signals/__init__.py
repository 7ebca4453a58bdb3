"""Tests of the parsers of statements about use."""
