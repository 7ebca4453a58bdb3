"""Tests of the platform; the folders mirror the package."""
