"""Tests of stories."""
