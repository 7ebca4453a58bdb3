"""The explorer: pages and a JSON API over one root, and an MCP server over the same functions."""
