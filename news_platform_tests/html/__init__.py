"""Tests of html."""
