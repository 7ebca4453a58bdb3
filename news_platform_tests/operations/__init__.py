"""What `doctor` finds and `metrics` counts."""
