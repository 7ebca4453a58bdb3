"""Articles and pages in, clusters of near-identical texts out."""
