"""Tests of rss.polling."""
