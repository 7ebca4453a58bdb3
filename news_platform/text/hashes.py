"""The fingerprint by which two texts count as the same, whatever their case, width or blanks."""

import hashlib
import unicodedata


def normalize_text(text: str) -> str:
    """Return the text after NFKC and casefolding, with single blanks between its words."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_hash(text: str) -> str:
    """Return the SHA-256 of the normalised text in hex."""
    return hashlib.sha256(normalize_text(text).encode("utf-8", "replace")).hexdigest()
