"""Contain what foreign input does: killable worker processes, and the boundary of each unit."""
