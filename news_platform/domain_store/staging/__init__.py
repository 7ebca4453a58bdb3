"""Stage 1: the rows of a batch, sorted by domain into one file per bucket."""
