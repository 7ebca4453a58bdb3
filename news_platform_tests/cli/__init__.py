"""Tests of news_platform.cli."""
