"""Tests of the Celery launcher: pure decisions, and real workers that are killed."""
