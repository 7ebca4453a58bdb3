"""Tests of the RSS room."""
