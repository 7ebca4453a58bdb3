"""Stage 2: staged batches merged into the generations of their buckets."""
