"""Analyses of stored articles: summary, keywords, topics and, with a model, sentiment."""
