"""Tests of rss.sheets."""
