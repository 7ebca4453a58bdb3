"""Tests of the survey of domains."""
