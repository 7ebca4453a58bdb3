"""Tests of rss.discovery."""
