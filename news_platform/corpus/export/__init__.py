"""A selection of the corpus in, shards with a manifest and a dataset card out."""
