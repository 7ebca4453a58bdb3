"""Tests of ccnews."""
