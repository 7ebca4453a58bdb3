"""The tree of a page in, its meta elements by name out."""

from collections.abc import Iterator

from lxml import html

from news_platform.text.normalize import normalize_spaces


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
