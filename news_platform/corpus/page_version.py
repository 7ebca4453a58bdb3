"""The version of the decision whether a page is an article; importing it loads no model."""

# Raised with every change of the features or the weights.
PAGE_MODEL_VERSION = "2"
