"""Tests of takedowns: the matcher, requests, removal and the proof."""
