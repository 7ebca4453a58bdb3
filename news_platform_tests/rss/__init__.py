"""Tests of rss."""
