"""Tests of news_platform.text."""
