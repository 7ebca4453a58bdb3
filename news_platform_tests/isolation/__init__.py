"""Tests of news_platform.isolation."""
