"""Tests of saved queries."""
