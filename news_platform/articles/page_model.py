"""An inspected page in, whether it is an article out.

The numbers of a page describe what it states about itself, how its text divides into prose, links,
lists and teasers, and what its address looks like. Its words are those of menus and buttons, of the
elements around the text, of the address, and of the beginning of the text. The odds of words and
the trees are learned from labelled pages by `benchmarks/train_pages.py`, over whole numbers, so
that the same page gets the same answer on every machine.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import SplitResult, urlsplit

import numpy as np
import numpy.typing as npt

from news_platform.articles.block_model import SCORE_UNIT, Trees, parse_trees
from news_platform.articles.blocks import HEADINGS, TextBlocks, text_size
from news_platform.articles.extract import InspectedPage
from news_platform.html.jsonld import MetaTags

_JSONLD_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(?:https?://schema\.org/)?(\w{3,40})"')
# What a page of each kind states in JSON-LD or microdata.
_STATED_TYPES: Mapping[str, frozenset[str]] = {
    name: frozenset(kinds.split())
    for name, kinds in {
        "news": "NewsArticle ReportageNewsArticle AnalysisNewsArticle OpinionNewsArticle "
        "LiveBlogPosting BackgroundNewsArticle ReviewNewsArticle",
        "article": "Article BlogPosting SocialMediaPosting Report",
        "product": "Product Offer AggregateOffer ProductGroup IndividualProduct",
        "list": "ItemList CollectionPage SearchResultsPage OfferCatalog",
        "forum": "DiscussionForumPosting QAPage Question Answer Comment ProfilePage",
        "manual": "TechArticle APIReference HowTo FAQPage SoftwareApplication",
        "place": "LocalBusiness Service CollegeOrUniversity ContactPoint PostalAddress Course "
        "GovernmentOrganization EducationalOrganization",
        "website": "WebSite SearchAction",
        "page": "WebPage AboutPage ContactPage ItemPage",
    }.items()
}
_MANY_TYPES = 50
_MICRODATA = 100
_DATE_SOURCES = ("", "visible", "time", "url", "microdata", "meta", "json-ld")
_OG_TYPES = {"": 0, "website": 1, "article": 2, "product": 3, "product.item": 3, "og:product": 3}
_OTHER_OG_TYPE = 4
_SHOWN_DATE = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}\b|\b\d{1,2}:\d\d\b|\d+年|\d+月")
_QUOTE = re.compile('[“”„«»「」『』"]')
_SENTENCE_END = re.compile("[.!?。！？…][\"'”’»)]*$")
_DATE_IN_PATH = re.compile(r"/(?:19|20)\d\d[/-]?(?:[01]?\d|[a-z]{3})\b", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"\d{5,}")
_FILE_ENDINGS = (".html", ".htm", ".shtml", ".php", ".aspx")
_WORD = re.compile(r"[^\W\d_]{2,20}")
_COUNTED_TAGS = """
article time form input select pre code table li h1 h2 h3 img a p
button iframe blockquote figure video textarea nav dl
"""
_COUNTED = frozenset(_COUNTED_TAGS.split())
_LONG = 80
# A label of a menu or a button; the headline of another article is longer.
_LABEL = 40
_TEASER = 25
# Percentage of a block's characters that are links, from which it only leads elsewhere.
_ALL_LINK = 80
_SAMPLE_CHARS = 20_000
_LEAD_CHARS = 1_500
_MOST = 1_000_000
_MOST_ELEMENTS = 5_000
# A shorter text without a stated date and an author is an apology, a notice or a teaser: one of
# 2,021 labelled articles is so.
_FEW_CHARACTERS = 300
_STATED_SOURCES = frozenset(("json-ld", "meta", "microdata"))
# So many linked headings with text below them are a list of other pages.
_LISTED = 3


@dataclass(frozen=True, slots=True)
class PageFeatures:
    """Numbers by name, -1 where a number is unknown, and sets of words by where they stand.

    A page `says_little` if it has little text of its own and names neither its day nor its author.
    """

    numbers: Mapping[str, int]
    words: Mapping[str, Collection[str]]
    says_little: bool = False


WORD_PLACES = ("labels", "names", "path", "lead")
"""Where words are looked up: menus and buttons, elements around the text, address, text."""


def page_features(page: InspectedPage, html: str, url: str) -> PageFeatures:
    """Return the features of a page; `html` is its text, `url` may be empty."""
    blocks, kept = page.body.place.blocks, page.body.place.kept
    sizes = [len(text) for text in blocks.texts]
    numbers = {
        **_stated(page, html),
        **_text(page, sizes),
        **_teasers(blocks, kept, sizes),
        **_repetition(blocks, kept, sizes),
        **_style(page.article.clean_text),
        **_elements(page),
        **_address(url),
    }
    parts = _parts(url)
    words = {
        "labels": _label_words(blocks, kept, sizes),
        "names": _names_around(blocks, kept),
        "path": frozenset(_WORD.findall(f"{parts.netloc.partition('.')[0]} {parts.path}".lower())),
        "lead": frozenset(_WORD.findall(page.article.clean_text[:_LEAD_CHARS].lower())),
    }
    return PageFeatures(numbers, words, _says_little(page))


def _says_little(page: InspectedPage) -> bool:
    article, place = page.article, page.body.place
    if article.authors or article.published_at_source in _STATED_SOURCES:
        return False
    listed = _below_linked_headings(place.blocks, frozenset(place.kept))
    others = sum(listed.values()) if len(listed) >= _LISTED else 0
    return text_size(article.clean_text) - others < _FEW_CHARACTERS


def _below_linked_headings(blocks: TextBlocks, kept: Collection[int]) -> Mapping[int, int]:
    """Return the size of the kept text of and below each heading that links to another page."""
    sizes: Counter[int] = Counter()
    heading = -1
    for number, text in enumerate(blocks.texts):
        if blocks.tags[blocks.holders[number]] in HEADINGS:
            is_link = blocks.link_chars[number] * 100 >= len(text) * _ALL_LINK
            heading = number if is_link else -1
        if heading >= 0 and number in kept:
            sizes[heading] += text_size(text)
    return sizes


def _stated(page: InspectedPage, html: str) -> Mapping[str, int]:
    article, stated, meta = page.article, page.stated, MetaTags(page.root)
    kinds = Counter(_JSONLD_TYPE.findall(html))
    itemtypes: frozenset[str] = frozenset()
    if "itemtype" in html:
        values = page.root.xpath("//@itemtype")
        itemtypes = frozenset(str(value).rstrip("/").rpartition("/")[2] for value in values)
    types = {
        f"type_{name}": min(sum(kinds[kind] for kind in known), _MANY_TYPES)
        + _MICRODATA * bool(known & itemtypes)
        for name, known in _STATED_TYPES.items()
    }
    source, site_name = article.published_at_source, meta.first("og:site_name")
    return {
        **types,
        "has_kind": int(bool(stated.kind)),
        "og_type": _OG_TYPES.get(meta.first("og:type").lower(), _OTHER_OG_TYPE),
        "date_source": _DATE_SOURCES.index(source) if source in _DATE_SOURCES else -1,
        "date_has_time": int(article.published_at_has_time),
        "authors": len(article.authors),
        "stated_authors": len(stated.authors),
        "modified": int(article.modified_at is not None),
        "canonical_depth": _depth(article.canonical_link),
        "titled_as_site": int(bool(article.title) and article.title in site_name),
        "section": int(bool(article.section)),
        "tags": min(len(article.tags), _MANY_TYPES),
        "subtitle": len(article.subtitle),
        "title": len(article.title),
        "stated_body": min(len(stated.body), _MOST),
        "article_meta": sum(name.startswith("article:") for name in meta.values),
        "twitter_meta": sum(name.startswith("twitter:") for name in meta.values),
        "paywall": -1 if article.is_paywalled is None else int(article.is_paywalled),
        "confidence": round(article.confidence * 1000),
        "by_fallback": int(article.text_source == "trafilatura"),
    }


def _text(page: InspectedPage, sizes: Sequence[int]) -> Mapping[str, int]:
    blocks, kept = page.body.place.blocks, page.body.place.kept
    total, own = max(sum(sizes), 1), [sizes[number] for number in kept]
    clean = max(sum(own), 1)
    tags = [blocks.tags[blocks.holders[number]] for number in kept]
    long = [number for number in kept if sizes[number] >= _LONG]
    prose = [number for number in long if _SENTENCE_END.search(blocks.texts[number])]
    span = kept[-1] - kept[0] + 1 if kept else 1
    return {
        "blocks": len(sizes),
        "kept": len(kept),
        "chars": min(total, _MOST),
        "clean_chars": min(len(page.article.clean_text), _MOST),
        "clean_share": sum(own) * 1000 // total,
        "links_share": min(sum(blocks.link_chars), total) * 1000 // total,
        "kept_links": sum(blocks.link_chars[number] for number in kept) * 1000 // clean,
        "kept_mean": sum(own) // max(len(own), 1),
        "kept_median": sorted(own)[len(own) // 2] if own else 0,
        "kept_longest": max(own, default=0),
        "kept_long": len(long),
        "kept_prose": sum(sizes[number] for number in prose) * 1000 // clean,
        "prose_blocks": len(prose),
        "kept_headings": _share(tags, HEADINGS),
        "kept_paragraphs": _share(tags, ("p",)),
        "kept_items": _share(tags, ("li", "dd", "dt")),
        "kept_cells": _share(tags, ("td", "th")),
        "kept_code": _share(tags, ("pre",)),
        "headline": min(page.body.place.headline, _MOST_ELEMENTS),
        "headline_to_text": kept[0] - page.body.place.headline if kept else -999,
        "kept_span": span * 1000 // max(len(sizes), 1) if kept else 0,
        "kept_density": len(kept) * 1000 // span,
        "kept_holders": len({blocks.parents[blocks.holders[number]] for number in kept}),
        "other_long": sum(size >= _LONG for size in sizes) - len(long),
        "full_share": len(page.article.clean_text) * 1000 // max(len(page.article.full_text), 1),
    }


def _share(tags: Sequence[str], wanted: Collection[str]) -> int:
    return sum(tag in wanted for tag in tags) * 1000 // max(len(tags), 1)


def _teasers(blocks: TextBlocks, kept: Sequence[int], sizes: Sequence[int]) -> Mapping[str, int]:
    """Count what leads to other articles: many on a list, few beside an article's text."""
    teasers = [
        number
        for number, size in enumerate(sizes)
        if size >= _TEASER and blocks.link_chars[number] * 100 >= size * _ALL_LINK
    ]
    first, last = (kept[0], kept[-1]) if kept else (0, -1)
    within = [number for number in teasers if first <= number <= last]
    linked = [number for number in teasers if blocks.tags[blocks.holders[number]] in HEADINGS]
    return {
        "teasers": len(teasers),
        "teasers_within": len(within),
        "teasers_within_share": len(within) * 1000 // max(last - first + 1, 1),
        "teasers_before": sum(number < first for number in teasers),
        "linked_headings": len(linked),
        "linked_headings_within": sum(first <= number <= last for number in linked),
        "teasers_per_text": len(teasers) * 1000 // max(sum(sizes[n] for n in kept) // 100, 1),
    }


TEASED = "teased_share"


def _repetition(blocks: TextBlocks, kept: Sequence[int], sizes: Sequence[int]) -> Mapping[str, int]:
    """Count what repeats on lists: links such as "read more", dates, and parts of equal form."""
    labels: Counter[str] = Counter()
    alike: Counter[tuple[str, str | None]] = Counter()
    heads: set[int] = set()
    dates = 0
    for number, text in enumerate(blocks.lowered):
        if sizes[number] <= _LABEL:
            dates += _SHOWN_DATE.search(text) is not None
        if blocks.link_chars[number] * 100 >= sizes[number] * _ALL_LINK:
            holder = blocks.holders[number]
            if sizes[number] <= _LABEL:
                labels[text] += 1
            if blocks.tags[holder] in HEADINGS:
                heads.add(number)
                alike[blocks.tags[holder], blocks.classes[blocks.parents[holder]]] += 1
    total = max(sum(sizes[number] for number in kept), 1)
    parts: Counter[int] = Counter()
    wider: Counter[int] = Counter()
    run = longest = 0
    before = kept[0] if kept else 0
    for number in kept:
        parent = blocks.parents[blocks.holders[number]]
        parts[parent] += sizes[number]
        wider[blocks.parents[parent]] += sizes[number]
        run = run + sizes[number] if number - before <= 1 else sizes[number]
        longest, before = max(longest, run), number
    teased = sum(sizes[number] for number in kept if number - 1 in heads)
    return {
        "same_labels": max(labels.values(), default=0),
        "same_headings": max(alike.values(), default=0),
        "dates_shown": dates,
        # Of the text, the blocks that each follow the linked headline of another page.
        TEASED: teased * 1000 // total if len(heads) > 1 else 0,
        "largest_part": max(parts.values(), default=0) * 1000 // total,
        "largest_wider_part": max(wider.values(), default=0) * 1000 // total,
        "longest_run": longest * 1000 // total,
    }


def _style(text: str) -> Mapping[str, int]:
    sample = text[:_SAMPLE_CHARS]
    words = sample.count(" ") + sample.count("\n") + 1
    return {
        "quotes": len(_QUOTE.findall(sample)) * 1000 // words,
        "exclamations": sample.count("!") * 1000 // words,
        "questions": sample.count("?") * 1000 // words,
        "word_length": len(sample) * 10 // words,
    }


def _elements(page: InspectedPage) -> Mapping[str, int]:
    counts: Counter[object] = Counter(element.tag for element in page.root.iter(*_COUNTED))
    return {f"n_{tag}": min(counts[tag], _MOST_ELEMENTS) for tag in sorted(_COUNTED)}


def _label_words(blocks: TextBlocks, kept: Iterable[int], sizes: Sequence[int]) -> Collection[str]:
    """Return the words of short blocks that are not part of the text."""
    own = frozenset(kept)
    labels = (
        text
        for number, text in enumerate(blocks.texts)
        if sizes[number] <= _LABEL and number not in own
    )
    return frozenset(_WORD.findall("\n".join(labels).lower()))


def _names_around(blocks: TextBlocks, kept: Iterable[int]) -> Collection[str]:
    """Return the words in the names of all elements around the text."""
    found: set[str] = set()
    seen: set[int] = set()
    for number in kept:
        element = blocks.holders[number]
        while element and element not in seen:
            seen.add(element)
            found.update(blocks.names[element])
            element = blocks.parents[element]
    return found


ADDRESS_NUMBERS = (
    "path_depth",
    "slug_words",
    "slug_length",
    "date_in_path",
    "number_in_path",
    "file_ending",
    "query",
)
"""The numbers that describe an address, -1 without one."""


def _parts(url: str) -> SplitResult:
    """Return the parts of an address; those of an invalid one are empty."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _depth(url: str) -> int:
    """Return the folders of an address, one for a query alone, 0 for a root, -1 without any."""
    parts = _parts(url)
    if not parts.netloc:
        return -1
    return len([part for part in parts.path.split("/") if part]) or int(bool(parts.query))


def _address(url: str) -> Mapping[str, int]:
    parts = _parts(url)
    if not parts.netloc:
        return dict.fromkeys(ADDRESS_NUMBERS, -1)
    segments = [part for part in parts.path.lower().split("/") if part]
    slug = max(segments[-2:], key=len, default="")
    values = (
        _depth(url),
        slug.count("-") + slug.count("_") + bool(slug),
        len(slug),
        int(_DATE_IN_PATH.search(parts.path) is not None),
        int(_LONG_NUMBER.search(parts.path) is not None),
        int(parts.path.endswith(_FILE_ENDINGS)),
        min(len(parts.query), _MANY_TYPES * 4),
    )
    return dict(zip(ADDRESS_NUMBERS, values, strict=True))


# Log-odds of a word in hundredths, by where it stands.
PlacedOdds = Mapping[str, Mapping[str, int]]
# From this share on (in thousandths), the text is a list of other pages and their first lines.
_MOSTLY_TEASED = 600
_SURELY_NOT = -100 * SCORE_UNIT
# The strongest words for and against: one clear sign weighs more than many weak ones.
_STRONGEST = 5


@dataclass(frozen=True, slots=True)
class PageModel:
    """The names of the numbers in the order of the trees, what was learned, the least score."""

    numbers: tuple[str, ...]
    odds: PlacedOdds
    trees: Trees
    least_score: int

    def score(self, features: PageFeatures) -> int:
        """Return the log-odds, in ten-thousandths, that such a page is an article."""
        # Few labelled lists are as plain as those of small sites, and no labelled page is an error
        # page: the trees do not know them.
        if features.says_little or features.numbers[TEASED] >= _MOSTLY_TEASED:
            return _SURELY_NOT
        row = feature_row(features, self.numbers, self.odds)
        return int(self.trees.scores(row[None, :])[0])

    def is_article(self, features: PageFeatures) -> bool:
        """Return whether a page with these features is an article."""
        return self.score(features) >= self.least_score


def feature_row(
    features: PageFeatures, numbers: Collection[str], odds: PlacedOdds
) -> npt.NDArray[np.int64]:
    """Return the numbers of a page, and four numbers for the words of each place."""
    row = [features.numbers[name] for name in numbers]
    for place in WORD_PLACES:
        row += _word_numbers(features.words[place], odds[place])
    return np.array(row, dtype=np.int64)


def _word_numbers(words: Collection[str], odds: Mapping[str, int]) -> list[int]:
    found = sorted(odds[word] for word in words if word in odds)
    total = sum(found)
    # The sum of n chance words grows with the root of n.
    even = total * 10 // math.isqrt(100 * max(len(found), 1))
    return [total, even, sum(found[:_STRONGEST]), sum(found[-_STRONGEST:])]


@cache
def load_page_model() -> PageModel:
    """Return the model of the package, read once."""
    written = files("news_platform.articles").joinpath("page_weights.json").read_text("utf-8")
    found = json.loads(written)
    return PageModel(
        tuple(found["numbers"]), found["odds"], parse_trees(found["trees"]), found["least_score"]
    )
