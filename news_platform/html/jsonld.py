"""The JSON-LD of a page in, the object that describes its article out."""

import json
from collections.abc import Iterator
from html import unescape
from typing import Any

from lxml import html

from news_platform.text.normalize import tidy

Thing = dict[str, Any]

_ARTICLE_TYPES = ("BlogPosting", "LiveBlogPosting", "Report", "Review", "SocialMediaPosting")
# Deeper nesting than any real page has; keeps the recursion short.
_MAX_DEPTH = 40


def article_object(root: html.HtmlElement) -> Thing:
    """Return the fullest article object of the page, with references resolved; {} without one."""
    things = [thing for document in _documents(root) for thing in _things(document, depth=0)]
    articles = [thing for thing in things if _is_article(thing)]
    best = max(articles, key=_fullness, default={})
    by_id = {thing["@id"]: thing for thing in things if "name" in thing and _has_text(thing, "@id")}
    return {key: _resolved(value, by_id) for key, value in best.items()}


def names(value: Any) -> list[str]:
    """Return the names in an author, publisher or section value, in the order written."""
    if isinstance(value, list):
        return [name for part in value for name in names(part)]
    if isinstance(value, dict):
        whole = value.get("name") or " ".join(
            str(value[part]) for part in ("givenName", "familyName") if value.get(part)
        )
        return names(whole)
    return [tidy(unescape(value))] if isinstance(value, str) and value.strip() else []


def text(thing: Thing, key: str) -> str:
    """Return the first text under `key`, on one line, or ''."""
    return next(iter(names(thing.get(key))), "")


def _documents(root: html.HtmlElement) -> Iterator[Any]:
    for script in root.iter("script"):
        if "ld+json" not in (script.get("type") or "") or not script.text:
            continue
        try:
            # strict=False: raw line breaks inside strings are common.
            yield json.loads(script.text.strip().rstrip(";"), strict=False)
        except (ValueError, RecursionError):
            continue


def _things(value: Any, *, depth: int) -> Iterator[Thing]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        if isinstance(part, dict | list):
            yield from _things(part, depth=depth + 1)


def _is_article(thing: Thing) -> bool:
    kinds = thing.get("@type")
    return any(
        isinstance(kind, str) and (kind.endswith("Article") or kind in _ARTICLE_TYPES)
        for kind in (kinds if isinstance(kinds, list) else [kinds])
    )


def _fullness(thing: Thing) -> int:
    return sum(bool(thing.get(key)) for key in ("headline", "author", "datePublished"))


def _resolved(value: Any, by_id: dict[str, Thing]) -> Any:
    """Return the value with `{"@id": …}` references replaced by what they name."""
    if isinstance(value, list):
        return [_resolved(part, by_id) for part in value]
    if isinstance(value, dict) and "name" not in value and _has_text(value, "@id"):
        return by_id.get(value["@id"], value)
    return value


def _has_text(thing: Thing, key: str) -> bool:
    return isinstance(thing.get(key), str)
