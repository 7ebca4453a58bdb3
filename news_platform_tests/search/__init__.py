"""Tests of news_platform.search."""
