"""Build the document of a search, with snippets and a cursor."""

import base64
import binascii
import json
from dataclasses import asdict, replace

from news_platform.errors import InputError
from news_platform.search.engine import FACETS, MAX_LIMIT, SearchOptions
from news_platform.search.pipeline import FoundArticle, with_snippets
from news_platform.server.app_state import AppState
from news_platform.server.documents import HitDocument, SearchDocument

MAX_PAGE = 100
# Facets have up to a thousand values each; a page shows the most frequent ones.
_SHOWN_VALUES = 20


def search_document(state: AppState, query: str, options: SearchOptions) -> SearchDocument:
    """Return the hits of a query; raise InputError with the place of a mistake in it."""
    answer = state.news.search(query, replace(options, facets=FACETS), snippets=False).answer
    shown = [hit for hit in answer.hits if not state.takedowns.covers(hit.canonical_url)]
    hits = tuple(map(_hit, with_snippets(query, shown, state.tables.read)))
    end = options.offset + options.limit
    # With one article per cluster there are fewer hits than articles that match.
    is_full = len(answer.hits) == options.limit
    has_more = is_full and end < min(answer.count, MAX_LIMIT - MAX_PAGE)
    facets = {
        name: dict(
            sorted(values.items()) if name == "day" else list(values.items())[:_SHOWN_VALUES]
        )
        for name, values in answer.facets.items()
    }
    return SearchDocument(
        query=query,
        count=answer.count,
        hits=hits,
        facets=facets,
        next_cursor=cursor_at(end) if has_more else None,
    )


def cursor_at(offset: int) -> str:
    """Return the opaque text that names the place after so many rows."""
    return base64.urlsafe_b64encode(json.dumps({"offset": offset}).encode()).decode().rstrip("=")


def parse_cursor(cursor: str) -> int:
    """Return the place that a cursor names; raise InputError for text that is none."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        offset = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))["offset"]
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise InputError("invalid cursor: expected one from `next_cursor`") from error
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise InputError("invalid cursor: expected one from `next_cursor`")
    return offset


def _hit(found: FoundArticle) -> HitDocument:
    part = found.snippet
    return HitDocument.of({**asdict(found.hit), "snippet": part.text, "marks": part.marks})
