"""A page in which our own rules found little text in, trafilatura's text out.

Pages rendered by a script have their text in JSON-LD or `<noscript>`, and some mark every paragraph
as a heading. Trafilatura handles these. It runs only for such pages because it takes three times as
long as our own rules.
"""

# A shorter text is not an article, or the article was not found.
_FEW_CHARACTERS = 250


def clean_text_of(html: str, found: str) -> str:
    """Return the text we found, or trafilatura's if ours is short and theirs twice as long."""
    if len(found) >= _FEW_CHARACTERS:
        return found
    # The import takes a second, and most workers never need it.
    from trafilatura import extract

    theirs = extract(html, include_comments=False) or ""
    return theirs if len(theirs) > max(2 * len(found), _FEW_CHARACTERS) else found
