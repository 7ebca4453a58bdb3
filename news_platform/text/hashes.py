"""A text in, the fingerprint out by which two texts count as the same."""

import hashlib

from news_platform.text.normalize import normalize_text


def text_hash(text: str) -> str:
    """Return the SHA-256 of the normalized text in hex; case, width and spacing do not matter."""
    return hashlib.sha256(normalize_text(text).encode("utf-8", "replace")).hexdigest()
