"""Tests of the sample world."""
