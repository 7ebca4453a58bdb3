"""Tests of the explorer, its API and the MCP server."""
