"""Tests of the ccnews room."""
