"""The result of extracting an article; whether its page is the one asked for, and its category.

Importing it loads no extractor. The section decides about the category if it is known, else the
tags, else the folders of the URL; the slug of a URL is a headline and names no section. Otherwise a
linear model over the words of the title and the lead decides. Its weights are learned from labelled
articles by `benchmarks/category.py`, as whole numbers, so that the same article gets the same
category on every machine.
"""

import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Literal
from urllib.parse import unquote

from news_platform.datasets import versions
from news_platform.text.normalize import UNSPACED, title_overlap, words
from news_platform.web.urls import canonical_url, url_host, url_path

# Version of the rules and weights; stored with every article, raised with every change of them.
EXTRACTOR_VERSION = versions.ARTICLE_EXTRACTOR


@dataclass(frozen=True, slots=True)
class Article:
    """One article; a value that the page does not state is empty.

    `clean_text` is the uncut body, `full_text` all visible text of the main column. `published_at`
    is the date that the page states, in UTC; `published_at_source` says where (json-ld, meta,
    microdata, time, url, visible). `out_links` are absolute, unique, to other hosts only.
    `confidence` is the F1 to expect of `clean_text`, 0 to 1. `text_source` is `page`,
    `json-ld` or `trafilatura`. `is_paywalled` is None if the page does not say.
    """

    clean_text: str = ""
    full_text: str = ""
    title: str = ""
    subtitle: str = ""
    authors: tuple[str, ...] = ()
    published_at: datetime | None = None
    section: str = ""
    tags: tuple[str, ...] = ()
    language: str = ""
    out_links: tuple[str, ...] = ()
    article_type: str = ""
    published_at_source: str = ""
    published_at_has_time: bool = False
    published_at_has_zone: bool = False
    modified_at: datetime | None = None
    image_url: str = ""
    canonical_link: str = ""
    is_paywalled: bool | None = None
    language_probability: float = 0.0
    text_source: str = ""
    confidence: float = 0.0
    extractor_version: str = EXTRACTOR_VERSION


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """The article of a page, and whether the page looks like that of an article."""

    article: Article
    looks_like_article: bool = False


# A zone that is missing or wrong, or an article of tomorrow; what is later was never published.
_AHEAD = timedelta(days=1)


def believed_date(
    stated: datetime | None, *, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return when an article was published, and the stated date if it is too far ahead for that."""
    if stated is None or stated <= now + _AHEAD:
        return stated, None
    return None, stated


WRONG_PAGE = "leads to a page that is not the article"
_WORDS = tomllib.loads(files("news_platform.articles").joinpath("words.toml").read_text("utf-8"))
_WALL_PATHS = frozenset(_WORDS["walls"]["paths"].split())
_WALL_HOSTS = frozenset(_WORDS["walls"]["hosts"].split())
_WALL_TITLE = re.compile("|".join(_WORDS["walls"]["titles"]), re.IGNORECASE)
_ERROR = re.compile("|".join(it for known in _WORDS["errors"].values() for it in known), re.I)
# An error page is an apology and a few links; a wide character says as much as three others.
_MAX_ERROR_SIZE = 700
# Longer titles are headlines, which may contain such words.
_MAX_WALL_TITLE = 60
# Titles of one article share at least this much, also after an edit.
_LEAST_OVERLAP = 0.2
# Titles that share more than this are hardly those of two articles.
_ENOUGH_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """Why a page is not the article, or '', and the one sign that leaves doubt, or ''."""

    reason: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class PageAsked:
    """What is known of a page before it is read: the asked address and who else leads to it.

    `url` is '' where nobody asked for the page, as in a crawl, `title` the title by which it was
    announced, `other_title` that of another article that leads to the same address.
    """

    url: str = ""
    title: str = ""
    other_title: str = ""
    status: int | None = None


def is_error_status(status: int | None) -> bool:
    """Return whether a page of this HTTP status is not an article; None if it is not known."""
    return status not in (None, 200)


def is_error_page(article: Article) -> bool:
    """Return whether a page has no more to say than that what was asked for is not there."""
    size = sum(3 if wide else 1 for wide in map(_WIDE.match, article.clean_text[:_MAX_ERROR_SIZE]))
    if size >= _MAX_ERROR_SIZE:
        return False
    return _ERROR.search(f"{article.title}\n{article.clean_text}") is not None


def judge_page(page: ExtractedPage, *, url: str, asked: PageAsked) -> PageVerdict:
    """Return whether the page at `url` is the article that was asked for.

    A status other than 200 decides; otherwise two signs do, and one leaves a doubt.
    """
    if is_error_status(asked.status):
        return PageVerdict(f"status {asked.status}")
    if is_error_page(page.article):
        return PageVerdict(WRONG_PAGE)
    signs = list(_signs(page, url=url, asked=asked))
    if len(signs) > 1:
        return PageVerdict(WRONG_PAGE)
    return PageVerdict(doubt=signs[0] if signs else "")


def _signs(page: ExtractedPage, *, url: str, asked: PageAsked) -> Iterator[str]:
    article = page.article
    if _wall_words(url) - _wall_words(asked.url):
        yield "wall_address"
    if len(article.title) <= _MAX_WALL_TITLE and _WALL_TITLE.match(article.title):
        yield "wall_title"
    if not page.looks_like_article:
        yield "not_an_article"
    if asked.other_title and not titles_fit(asked.other_title, asked.title):
        yield "shared_address"
    if fits(article, url=asked.url, title=asked.title) is False:
        yield "other_title"


def fits(article: Article, *, url: str, title: str) -> bool | None:
    """Return whether the page states this title or address; None if it states neither."""
    if article.canonical_link and canonical_url(article.canonical_link) == canonical_url(url):
        return True
    if not article.title or not title:
        return None
    return titles_fit(article.title, title)


def titles_fit(left: str, right: str) -> bool:
    """Return whether two titles can be those of one article."""
    return title_overlap(left, right) >= _LEAST_OVERLAP


def titles_agree(left: str, right: str) -> bool:
    """Return whether two titles are most likely those of one article."""
    return title_overlap(left, right) > _ENOUGH_OVERLAP


def _wall_words(url: str) -> set[str]:
    """Return the folders of an address that stand for a wall; `/` stands for a home page."""
    if not url:
        return set()
    path = url_path(url)
    names = {part.partition(".")[0] for part in path.lower().split("/") if part}
    host = url_host(url).partition(".")[0]
    return (names & _WALL_PATHS) | ({host} & _WALL_HOSTS) | (set() if names else {"/"})


Category = Literal["politics", "sports", "other"]

_SIGN_COUNTS = (1, 2, 3, 4, 6, 8, 12)
_SIGN_SHARES = (5, 10, 20, 30, 50)  # per thousand words
# The lead shows what an article is about, so only the beginning is used.
_LEAD_CHARS = 2_000
# The beginning of a longer word stands for its forms.
_STEM = 5
_SHORT_WORD = 3
# A longer name is a headline in the path.
_MAX_FOLDER_WORDS = 3
_BORDER = re.compile(r"[/>|,»:•]")
_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile(f"[{UNSPACED}]")


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


_CATEGORY_OF: Mapping[str, Category] = {
    _fold(word): name for name, text in _WORDS["sections"].items() for word in text.split()
}
_SIGN_WORDS = {name: frozenset(map(_fold, text.split())) for name, text in _WORDS["signs"].items()}


def stated_category(*, url: str, section: str, tags: Iterable[str] = ()) -> Category | None:
    """Return the category that the section, the tags or the folders of the URL name; else None."""
    whole_tags = (tag for tag in map(_fold, tags) if tag.strip() in _CATEGORY_OF)
    for names in (_BORDER.split(section), whole_tags, _folders(url)):
        found = {_CATEGORY_OF[word] for name in names for word in _known_words(name)}
        # Beside politics or sports, another section says nothing: `politics/business`.
        if len(found) == 1:
            return found.pop()
    return None


def _known_words(name: str) -> Iterator[str]:
    folded = _fold(name).strip()
    if folded.replace("-", "").replace(" ", "") in _CATEGORY_OF:
        yield folded.replace("-", "").replace(" ", "")
    else:
        yield from (word for word in _WORD.findall(folded) if word in _CATEGORY_OF)


def _folders(url: str) -> Iterator[str]:
    """Yield the folders of the path without headlines, and the first label of the host."""
    for folder in unquote(url_path(url)).strip("/").split("/")[:-1]:
        if len(_WORD.findall(folder)) <= _MAX_FOLDER_WORDS:
            yield folder
    yield url_host(url).partition(".")[0]


def guess_category(
    *, url: str, section: str, tags: Iterable[str], title: str, text: str
) -> Category:
    """Return the stated category of an article, else the one that its words speak for."""
    stated = stated_category(url=url, section=section, tags=tags)
    return stated or load_category_model().category(category_words(title, text))


def category_words(title: str, text: str) -> frozenset[str]:
    """Return the features of an article: its words, their stems, and steps of how many signs."""
    found = words(f"{title}\n{text[:_LEAD_CHARS]}")
    telling = {word for word in found if len(word) >= _SHORT_WORD and not word.isdigit()}
    telling |= {word[:_STEM] + "*" for word in telling if len(word) > _STEM}
    # Scripts without spaces: every character is a word, and two of them mean something.
    telling |= {a + b for a, b in pairwise(found) if _WIDE.match(a) and _WIDE.match(b)}
    folded = [_fold(word) for word in found]
    for name, signs in _SIGN_WORDS.items():
        hits = [word for word in folded if word in signs]
        share = 1000 * len(hits) // max(len(folded), 1)
        telling |= {f"{name} {step}" for step in _SIGN_COUNTS if len(set(hits)) >= step}
        telling |= {f"{name} {step}‰" for step in _SIGN_SHARES if share >= step}
    return frozenset(telling)


@dataclass(frozen=True, slots=True)
class CategoryModel:
    """What speaks for politics and for sports, in thousandths, by word; `bias` without words."""

    bias: tuple[int, int]
    weights: Mapping[str, tuple[int, int]]

    def category(self, found: Iterable[str]) -> Category:
        """Return the category that these features speak for."""
        known = [self.weights[word] for word in found if word in self.weights]
        # The sum of n chance words grows with the root of n.
        root = math.isqrt(100 * max(len(known), 1))
        politics = self.bias[0] + sum(weight for weight, _ in known) * 10 // root
        sports = self.bias[1] + sum(weight for _, weight in known) * 10 // root
        if max(politics, sports) <= 0:
            return "other"
        return "politics" if politics >= sports else "sports"


@cache
def load_category_model() -> CategoryModel:
    """Return the model of the package, read once."""
    written = files("news_platform.articles").joinpath("category_weights.json").read_text("utf-8")
    found = json.loads(written)
    politics, sports = found["bias"]
    return CategoryModel((politics, sports), found["weights"])
