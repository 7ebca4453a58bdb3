"""Tests of how the benchmarks are found and described."""
