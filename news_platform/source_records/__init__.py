"""Page snapshots in, clean, ordered and provenanced text blocks out."""
