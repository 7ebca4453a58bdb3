"""Tests of the declarations of datasets."""
