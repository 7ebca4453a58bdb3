"""A page in, the title of its article out, without the site's name and section.

Pages of newsrooms state their headline (JSON-LD `NewsArticle`, OpenGraph); other pages show it as
`<h1>`, and state what search engines shall show. What is stated is checked against what is shown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from urllib.parse import urlsplit

from lxml import html

from news_platform.articles.blocks import visible_text
from news_platform.articles.meta_tags import MetaTags
from news_platform.html import jsonld
from news_platform.html.jsonld import JsonObject
from news_platform.text.normalize import normalize_letters

# Between a title and the names of section and site.
_SEPARATOR = re.compile(r"\s+[|\-–—•»:·/<>~]+\s+|\s*[|｜：»]\s*|_+|--+|::")
_NEWS_SEPARATOR = re.compile(r"\s+[|\-–—•»:·]+\s+|\s*[|｜：]\s*")
_WORD = re.compile(r"\w+")
# A heading is the title if it shares this percentage of the words of a stated one.
_SHARED_WORDS = 30
_MAX_LENGTH = 300
_MIN_LETTERS = 9


@dataclass(frozen=True, slots=True)
class _Titles:
    """What a page states and shows, each without the site's name."""

    stated: Sequence[str]
    page_title: str
    headings: Sequence[str]


def article_title(
    root: html.HtmlElement, article: JsonObject, meta: MetaTags, *, site_names: Set[str]
) -> str:
    """Return the title; `site_names` are the normalized names of the site."""
    headline = jsonld.text(article, "headline")
    stated = [
        text for text in (meta.first("og:title"), headline, meta.first("twitter:title")) if text
    ]
    levels = [[visible_text(h) for h in root.iter(level)] for level in ("h1", "h2", "h3")]
    page_title = next((visible_text(title) for title in root.iter("title")), "")
    if stated and _is_news(article):
        return _without_site(stated[0], site_names, bare=(headline, *levels[0]))
    shown = [text for level in levels for text in level]

    def cut(text: str) -> str:
        return _best_part(text, site_names, shown)

    own = [text for text in map(cut, stated) if normalize_letters(text) not in site_names]
    headings = [t for t in levels[0] if 3 < len(t) < _MAX_LENGTH]
    headings = [text for text in headings if normalize_letters(text) not in site_names]
    titles = _Titles(own, cut(page_title), headings)
    return (
        _same_heading(titles)
        or _similar_heading(titles)
        or next(iter(own), "")
        or _heading_in_title(shown, page_title)
        or _shown_title(titles, site_names)
        or page_title
    )


def site_names(article: JsonObject, meta: MetaTags, *, url: str) -> frozenset[str]:
    """Return the normalized names of the site: as stated, and its host."""
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    names = (
        meta.first("og:site_name"),
        meta.first("application-name"),
        host,
        host.partition(".")[0],
        host.rpartition(".")[0],
        *jsonld.names(article.get("publisher")),
    )
    return frozenset(normalized for name in names if (normalized := normalize_letters(name)))


def _is_news(article: JsonObject) -> bool:
    return any("News" in kind or kind == "Report" for kind in jsonld.kinds(article))


def _without_site(title: str, site: Set[str], *, bare: Iterable[str]) -> str:
    """Return the title without a separator and the site's name at its end."""
    known = {normalize_letters(text) for text in bare if text}
    for cut in reversed(list(_NEWS_SEPARATOR.finditer(title))):
        head, tail = title[: cut.start()], title[cut.end() :]
        if head and (normalize_letters(head) in known or normalize_letters(tail) in site):
            return head
    return title


def _best_part(title: str, site: Set[str], shown: Iterable[str]) -> str:
    """Return the longest part that the page shows as a heading, else all but the site's names."""
    cuts = list(_SEPARATOR.finditer(title))[:12]
    starts, ends = [0, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), len(title)]
    headings = {
        letters for text in shown if len(letters := normalize_letters(text)) >= _MIN_LETTERS
    }
    parts = [title[start:end] for start in starts for end in ends if start < end]
    same = [part for part in parts if part != title and normalize_letters(part) in headings]
    if same:
        return max(same, key=len)
    first, last = 0, len(starts) - 1
    while last > first and normalize_letters(title[starts[last] : ends[last]]) in site:
        last -= 1
    while last > first and normalize_letters(title[starts[first] : ends[first]]) in site:
        first += 1
    return title[starts[first] : ends[last]]


def _same_heading(titles: _Titles) -> str:
    for text in (*titles.stated, titles.page_title):
        for heading in titles.headings:
            if normalize_letters(text) == normalize_letters(heading):
                return heading
    return ""


def _similar_heading(titles: _Titles) -> str:
    """Return the heading that shares most words with what the page states."""
    best, most = "", _SHARED_WORDS - 1
    for heading in titles.headings:
        if len(_words(heading)) < 2:
            continue
        shared = max(_shared(heading, text) for text in (*titles.stated, titles.page_title))
        if shared > most:
            best, most = heading, shared
    return best


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _shared(left: str, right: str) -> int:
    """Return the percentage of the shorter text's words that both have."""
    one, other = _words(left), _words(right)
    return len(one & other) * 100 // max(min(len(one), len(other)), 1)


def _heading_in_title(shown: Iterable[str], page_title: str) -> str:
    whole = normalize_letters(page_title)
    inside = (text for text in shown if len(_words(text)) >= 3 and normalize_letters(text) in whole)
    return next(inside, "")


def _shown_title(titles: _Titles, site: Set[str]) -> str:
    if titles.page_title and normalize_letters(titles.page_title) not in site:
        return titles.page_title
    return next(_long_headings(titles), "")


def _long_headings(titles: _Titles) -> Iterator[str]:
    yield from (text for text in titles.headings if len(_words(text)) >= 3)
    yield from titles.headings
