"""The revisions in order; each has a number and refers to its predecessor."""
