"""Tests of news_platform.web."""
