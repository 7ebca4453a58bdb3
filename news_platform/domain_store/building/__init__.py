"""Stage 2: merge staged batches into the data files and the index of each bucket."""
