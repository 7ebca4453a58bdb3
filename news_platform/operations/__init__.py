"""Observe a running platform: what `doctor` checks and `metrics` prints."""
