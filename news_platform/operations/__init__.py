"""Look at a running platform from outside: what `doctor` checks and `metrics` counts."""
