"""Another extractor's word on a page whose article our own rules hardly find.

Pages drawn by a script carry their text in JSON-LD or `<noscript>`; some set every paragraph as a
heading. Trafilatura knows these ways. It is asked only then: it takes three times as long as we do.
"""

# Shorter is no article, or one that was not found.
_FEW_CHARACTERS = 250


def clean_text_of(html: str, found: str) -> str:
    """Return the text we found, or trafilatura's where ours is short and theirs twice as long."""
    if len(found) >= _FEW_CHARACTERS:
        return found
    # A second of imports that most workers never need.
    from trafilatura import extract

    theirs = extract(html, include_comments=False) or ""
    return theirs if len(theirs) > max(2 * len(found), _FEW_CHARACTERS) else found
