"""Versions of the code that makes rows: raise one when the same input would give other rows.

They stand here, below the features, so that the declarations of datasets can name them. Importing
them loads no model and no library.
"""

# `ccnews collect --older-than` collects again what an older version wrote.
CRAWL_EXTRACTOR = "4"
CAPTURE_INDEX = "1"
ARTICLE_EXTRACTOR = "6"
# The decision whether a page is an article: its features and weights.
PAGE_MODEL = "5"
CRAWL_ARTICLES = f"{ARTICLE_EXTRACTOR}-{PAGE_MODEL}"
# Part of the names of staged files, so that a new format gets new files.
STORE_FORMAT = "1"
LEDGER = "2"
SEARCH_INDEX = "3"
SEGMENTER = "8"
# Of the list of AI crawlers: policies are comparable only under one list.
AI_BOTS = "2026-11-17"
# The parameters of `near_duplicates.sketch`; sketches of others are not comparable.
SKETCHES = "2-3-32-4-20-200000"
# The terms, the learned scores and the rules of links.
STORIES = "2"
TRAINING_EXPORT = "2"
DOMAIN_QUEUE = "1"
USAGE_SIGNALS = "3"
TAKEDOWNS = "1"
