"""Run a function in killable worker processes: a hang, crash or memory hog costs one item."""
