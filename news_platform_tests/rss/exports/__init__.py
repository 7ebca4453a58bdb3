"""Tests of selections and export formats."""
