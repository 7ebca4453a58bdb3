"""Tests of news_platform.near_duplicates."""
