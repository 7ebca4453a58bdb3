"""A pool of killable worker processes: a hang, a crash or a memory hog costs one item."""
