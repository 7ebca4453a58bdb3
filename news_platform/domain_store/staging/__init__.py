"""Stage 1: write the rows of a batch, sorted by domain, to one folder per bucket."""
