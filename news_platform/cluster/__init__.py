"""Run the asset graph on several machines: a Celery run launcher and the worker application."""
