"""Find the title of an article, without the site's name and section.

Pages of newsrooms state their headline (JSON-LD `NewsArticle`, OpenGraph); other pages show it as
`<h1>`, and state what search engines shall show. What is stated is checked against what is shown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlsplit

from lxml import html

from news_platform.articles.blocks import visible_text
from news_platform.html import jsonld
from news_platform.html.jsonld import JsonObject, MetaTags
from news_platform.text.normalize import normalize_letters

# Between a title and the names of section and site.
_SEPARATOR = re.compile(
    r"\s+[|\-–—•»:·/<>~]+\s+|\s*[|｜：»]\s*|_+|--+|::"
    r"|(?<=[\u2e80-\uffef])-(?=[\u2e80-\uffef])"
)
# Marks that stand between the parts of a page's title, but not inside of headlines.
_PART_MARK = re.compile(
    r"\s+[|»]+\s+|\s*[|｜]\s*|(?<=\w)_(?=\w)|::|(?<=[\u2e80-\uffef])\s?-\s?(?=[\u2e80-\uffef])"
)
_KICKER_END = re.compile(r":\s+|\s+[–—-]\s+")
_APART = frozenset("([–—|-")
_MIN_KICKER = 4
_MIN_WORDS = 3
_LONG_WORD = 4
_MAX_KICKERS = 3
_NEWS_SEPARATOR = re.compile(r"\s+[|\-–—•»:·]+\s+|\s*[|｜：]\s*")
_WORD = re.compile(r"\w+")
# A heading is the title if it shares this percentage of the words of a stated one.
_SHARED_WORDS = 30
_MAX_LENGTH = 300
_MAX_HEADLINE = 120
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
    site_names |= _names_linked_home(root)
    levels = [[visible_text(h) for h in root.iter(level)] for level in ("h1", "h2", "h3")]
    page_title = next((visible_text(title) for title in root.iter("title")), "")
    if stated and jsonld.is_news(article):
        title = _newsroom_title(stated[0], headline, levels[0], page_title)
        return _without_site(title, site_names, bare=(headline, *levels[0]))
    shown = [text for level in levels for text in level]

    def cut(text: str) -> str:
        return _best_part(text, site_names, shown)

    own = [text for text in map(cut, stated) if normalize_letters(text) not in site_names]
    headings = [t for t in levels[0] if 3 < len(t) < _MAX_LENGTH]
    headings = [text for text in headings if normalize_letters(text) not in site_names]
    titles = _Titles(own, cut(page_title), headings)
    heading = _same_heading(titles) or _similar_heading(titles)
    if after_kickers := _after_kickers(heading, own):
        return after_kickers
    if heading:
        return _without_site(_without_kicker(heading, (*stated, page_title)), site_names, bare=())
    return _longest_part(
        next(iter(own), "")
        or _heading_in_title(shown, page_title)
        or _shown_title(titles, site_names, shown)
        or page_title
    )


def _newsroom_title(stated: str, headline: str, headings: Iterable[str], page_title: str) -> str:
    """Return the stated title, or the JSON-LD headline where the page speaks for that.

    `og:title` may be written for search engines, like `<title>`, or shortened for shared links,
    while the page shows the headline. If the page shows neither, `<title>` decides.
    """
    title, other = normalize_letters(stated), normalize_letters(headline)
    shown = {normalize_letters(heading) for heading in headings}
    letters = normalize_letters(page_title)
    if not other or other == title or title in shown:
        return stated
    if other in shown:
        is_for_search = letters.startswith(title) and not letters.startswith(other)
        return headline if is_for_search or other.startswith(title) else stated
    is_page_title = letters.startswith(other) and not letters.startswith(title)
    return headline if is_page_title else stated


def _after_kickers(heading: str, stated: Sequence[str]) -> str:
    """Return what follows the kicker of a heading, if a stated title has it after another kicker.

    A kicker names the topic, so that two of them share only words like "in".
    """
    for cut in islice(_KICKER_END.finditer(heading), _MAX_KICKERS):
        rest, kicker = heading[cut.end() :], _long_words(heading[: cut.start()])
        for title in stated if len(_words(rest)) >= _MIN_WORDS else ():
            for other in islice(_KICKER_END.finditer(title), _MAX_KICKERS):
                is_same = normalize_letters(title[other.end() :]) == normalize_letters(rest)
                if is_same and kicker and not kicker & _long_words(title[: other.start()]):
                    return rest
    return ""


def _names_linked_home(root: html.HtmlElement) -> frozenset[str]:
    """Return the normalized headings that link to the home page: they name the site."""
    found = []
    for heading in root.iter("h1", "h2"):
        links = list(heading.iter("a"))[:2]
        if len(links) == 1 and _is_home(links[0].get("href") or ""):
            found.append(normalize_letters(visible_text(heading)))
    return frozenset(filter(None, found))


def _is_home(target: str) -> bool:
    try:
        parts = urlsplit(target.strip())
    except ValueError:
        return False
    is_root = parts.path in ("", "/") and not parts.query and not parts.fragment
    return is_root and bool(parts.netloc or parts.path)


def _without_kicker(heading: str, stated: Sequence[str]) -> str:
    """Return the part of a heading that is stated as a title: the rest is a kicker or a credit."""
    whole = normalize_letters(heading)
    if any(whole in normalize_letters(title) for title in stated):
        return heading
    for title in stated:
        for part in map(str.strip, (title, *_SEPARATOR.split(title))):
            if len(_words(part)) >= 3 and (_ends_with(heading, part) or _opens_with(heading, part)):
                return part
    return heading


def _ends_with(heading: str, part: str) -> bool:
    letters = normalize_letters(part)
    before = normalize_letters(heading).removesuffix(letters)
    # "The" is not a kicker.
    return normalize_letters(heading).endswith(letters) and len(before) >= _MIN_KICKER


def _opens_with(heading: str, part: str) -> bool:
    """Return True if the heading goes on after the part with something in brackets or apart."""
    rest = heading[len(part) :].lstrip()
    is_apart = rest[:1] in _APART or part[-1:] in "?!.»”"
    return heading.startswith(part) and bool(rest) and is_apart


def _longest_part(title: str) -> str:
    """Return the longest part between marks that headlines do not contain."""
    parts = [part.strip() for part in _PART_MARK.split(title)]
    return max(parts, key=lambda part: len(_words(part)) + len(part) / 1000, default=title)


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


def _long_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _words(text) if len(word) >= _LONG_WORD)


def _shared(left: str, right: str) -> int:
    """Return the percentage of the shorter text's words that both have."""
    one, other = _words(left), _words(right)
    return len(one & other) * 100 // max(min(len(one), len(other)), 1)


def _heading_in_title(shown: Iterable[str], page_title: str) -> str:
    whole = normalize_letters(page_title)
    inside = (text for text in shown if len(_words(text)) >= 3 and normalize_letters(text) in whole)
    return next(inside, "")


def _shown_title(titles: _Titles, site: Set[str], shown: Sequence[str]) -> str:
    """Return the page's title, or a heading where that only names the site or a section."""
    own = titles.page_title if normalize_letters(titles.page_title) not in site else ""
    headings = list(_long_headings(titles, shown))
    if headings and len(_words(own)) < 4 and len(_words(headings[0])) >= 4:
        return headings[0]
    return own or next(iter(headings), "")


def _long_headings(titles: _Titles, shown: Sequence[str]) -> Iterator[str]:
    yield from (text for text in titles.headings if len(_words(text)) >= 3)
    yield from titles.headings
    # Of the lower headings only the first stands where a headline does; some are whole sentences.
    yield from (text for text in shown[:1] if 3 < len(text) < _MAX_HEADLINE)
