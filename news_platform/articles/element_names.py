"""The names that a page gives its elements: words of class, id and role, and meta elements by name.

Content management systems share these words: `comments`, `related`, `entry-content`.
"""

import re
from collections.abc import Iterator

from lxml import html

from news_platform.articles import boilerplate
from news_platform.text.normalize import normalize_spaces

# Parts of camelCase names count as words.
_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}")
# A longer id is often the slug of a heading and means nothing.
_MAX_ID_LENGTH = 30
_MAX_NAME_LENGTH = 20
# Pages share few distinct names, but a crawl of many sites must not grow the cache for ever.
_MAX_CACHED = 20_000

_Names = tuple[str, str | None, str | None, str | None, str | None, bool]
_cache: dict[_Names, tuple[str, ...]] = {}


def name_words(element: html.HtmlElement, tag: str) -> tuple[str, ...]:
    """Return the words of the element's names, sorted, each once."""
    get = element.get
    names = (tag, get("class"), get("id"), get("itemprop"), get("role"), _is_hidden(element))
    words = _cache.get(names)
    if words is None:
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        words = _cache[names] = tuple(sorted(_words(*names)))
    return words


def _words(
    tag: str,
    class_name: str | None,
    ident: str | None,
    itemprop: str | None,
    role: str | None,
    is_hidden: bool,
) -> set[str]:
    ident = ident if ident and len(ident) <= _MAX_ID_LENGTH else ""
    words = {word.lower() for word in _WORD.findall(f"{class_name or ''} {ident}")}
    words.add(f"tag:{tag}")
    if itemprop:
        words.add(f"itemprop:{itemprop.lower()[:_MAX_NAME_LENGTH]}")
    if role:
        words.add(f"role:{role.lower()[:_MAX_NAME_LENGTH]}")
    if is_hidden:
        words.add("hidden:")
    return words


def _is_hidden(element: html.HtmlElement) -> bool:
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    style = element.get("style")
    return style is not None and boilerplate.HIDDEN_STYLE.search(style) is not None


class MetaTags:
    """The meta elements of a page by lower-case name, in the order written."""

    def __init__(self, root: html.HtmlElement) -> None:
        self.values: dict[str, list[str]] = {}
        for element in root.iter("meta"):
            content = normalize_spaces(element.get("content") or "")
            for key in ("property", "name", "itemprop"):
                if content and element.get(key):
                    self.values.setdefault(element.get(key).strip().lower(), []).append(content)

    def all(self, *names: str) -> Iterator[str]:
        """Yield every value under the names, name by name, in the order written."""
        for name in names:
            yield from self.values.get(name, ())

    def first(self, *names: str) -> str:
        """Return the first value under the names, or ''."""
        return next(self.all(*names), "")
