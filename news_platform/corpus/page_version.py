"""The version of the decision whether a page is an article; importing it loads no model."""

from news_platform.datasets import versions

# Raised with every change of the features or the weights.
PAGE_MODEL_VERSION = versions.PAGE_MODEL
