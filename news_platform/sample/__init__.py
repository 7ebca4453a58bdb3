"""A small deterministic fictional news world for the demo and the tests."""
