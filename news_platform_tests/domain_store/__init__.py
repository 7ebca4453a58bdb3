"""Tests of the domain store."""
