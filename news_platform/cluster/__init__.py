"""The Celery launcher that takes the same graph beyond one machine."""
