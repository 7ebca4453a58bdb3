"""Tests of news_platform.defs."""
