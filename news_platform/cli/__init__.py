"""The command line, `news-platform ...`: one file per feature."""
