"""Find the date on which an article was published, and where the page states it.

Nothing is guessed. The first source that states a date decides: JSON-LD, meta elements, microdata,
a `<time>` near the headline, the day in the URL, a line near the headline that shows a date.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from urllib.parse import urlsplit

from lxml import html

from news_platform.articles.blocks import TextBlocks, visible_text
from news_platform.articles.body import BodyPlace
from news_platform.html import jsonld
from news_platform.html.dates import DayOrder, StatedDate, find_shown_date, parse_stated_date
from news_platform.html.jsonld import JsonObject, MetaTags

_PUBLISHED_META_NAMES = """
article:published_time og:article:published_time article:published og:published_time datepublished
date publish-date publishdate publish_date published_time pubdate publication_date parsely-pub-date
sailthru.date dc.date dc.date.issued dcterms.date dcterms.issued dcterms.created
citation_publication_date citation_online_date cxenseparse:recs:publishtime bt:pubdate
article.published article_date_original originalpublicationdate published-date published_date
publisheddate publication-date date_published date-published article:publish_date pub_date
dc.date.created
"""
_PUBLISHED_META = tuple(_PUBLISHED_META_NAMES.split())
_MODIFIED_META_NAMES = """
article:modified_time og:updated_time datemodified last-modified lastmod dcterms.modified
dc.date.modified
"""
_MODIFIED_META = tuple(_MODIFIED_META_NAMES.split())
_URL_DAY = re.compile(
    r"(?<![\d])((?:19|20)\d\d)([/_-]?)(0?[1-9]|1[0-2])\2([12]\d|3[01]|0?[1-9])(?!\d)"
)
# A longer text contains a date, it does not show one.
_MAX_SHOWN_DATE = 140
# Of a line among the article's text that is only a date.
_MAX_DATE_LINE = 40
# More than a publication, a change, and today.
_LISTED_DAYS = 4
_LEVELS_ABOVE = 4
# Days of one moment differ by up to a day and a half between a stated and a shown date.
_ANY_ZONE = timedelta(hours=36)
# How many blocks a date line may stand before the headline, after it, or after the text.
_BEFORE_HEADLINE = 12
_AFTER_HEADLINE = 12
_AFTER_TEXT = 4
_MODIFIED_WORDS = re.compile(
    r"\b(?:updated?|modified|last (?:change|review)\w*|zuletzt|aktualisiert|geändert|actualizado"
    r"|mis à jour|aggiornato|обновлен)",
    re.IGNORECASE,
)
# A line that says itself that its date is the day of publication.
_PUBLISHED_LINE = re.compile(
    r"^\W*(?:first )?(?:published|posted|publication date|date posted|erschienen|veröffentlicht"
    r"|publiziert|publié|publicado|pubblicato|gepubliceerd|opublikowano|опубликовано|发布时间"
    r"|發布時間|发表于|掲載日|公開日)",
    re.IGNORECASE,
)
# A text that opens with place and date: "(21. November 2022) ...", "DHAKA, Dec 20, 2025 - ...".
_DATELINE = re.compile(r"^((?:[^.!?]|(?<=\d)\.){0,60}?\b(?:19|20)\d\d)[^\w]{0,3}(?:[)\]|–—(]|-\s)")
_PREPOSITION = re.compile(
    r"^\W*(?:on|in|since|until|by|from|am|im|seit|bis|vom|le|el|il|em|op|den)\b", re.IGNORECASE
)
_OTHER_DATE = re.compile(
    r"©|\(c\)|copyright|gültig|bis zum"
    r"|\b(?:born|joined|founded|release(?:d| date)|until|deadline|valid)\b",
    re.IGNORECASE,
)
_DATE_CLASS = re.compile(
    r"(?:^|[\s_-])(?:date|datum|fecha|data|time|published|posted|pub-?date|post-?date|entry-?date"
    r"|created|timestamp)s?(?:$|[\s_-])",
    re.IGNORECASE,
)
# Languages that write the day before the month; English does both, by country.
_MONTH_FIRST = frozenset(("en-us", "en_us"))
_ENGLISH_DAY_FIRST = re.compile(r"en[-_](?:gb|au|nz|ie|in|za|uk|sg|ng|ke|pk|my)")
_LANGUAGE_IN_PATH = re.compile(r"/(en[-_][a-z]{2})(?=/|$)")
# Countries whose English pages write the day first, by the end of their hosts.
_DAY_FIRST_HOST = re.compile(r"\.(?:uk|au|nz|ie|in|za|sg|ng|ke|pk|my)$")


@dataclass(frozen=True, slots=True)
class PublishedDate:
    """When an article was published, and the source that states it."""

    date: StatedDate
    source: str


def stated_date(
    root: html.HtmlElement, objects: Iterable[JsonObject], meta: MetaTags
) -> PublishedDate | None:
    """Return the date that JSON-LD, meta elements or microdata state."""
    sources = (
        ("json-ld", (jsonld.text(thing, "datePublished") for thing in objects)),
        ("meta", meta.all(*_PUBLISHED_META)),
        ("microdata", _microdata(root)),
        ("json-ld", (jsonld.text(thing, "dateCreated") for thing in objects)),
    )
    for source, values in sources:
        for value in values:
            if value and (date := parse_stated_date(value) or find_shown_date(value)) is not None:
                return PublishedDate(date, source)
    return None


def modified_date(objects: Iterable[JsonObject], meta: MetaTags) -> StatedDate | None:
    """Return when the page says that it was last changed."""
    values = (
        *(jsonld.text(thing, "dateModified") for thing in objects),
        *meta.all(*_MODIFIED_META),
    )
    return next((date for value in values if value and (date := parse_stated_date(value))), None)


def shown_date(
    root: html.HtmlElement, place: BodyPlace, *, url: str, language: str
) -> PublishedDate | None:
    """Return the date that the page shows near its headline or in its address."""
    order = day_order(language, url)
    window = _window(place)
    if date := _nearest_time(root, place, window, order):
        return PublishedDate(date, "time")
    if date := url_day(url):
        return PublishedDate(date, "url")
    if date := _shown_line(place, window, order):
        return PublishedDate(date, "visible")
    return None


def corrected_date(
    stated: PublishedDate, root: html.HtmlElement, place: BodyPlace, *, url: str, language: str
) -> PublishedDate:
    """Return the stated date, or the only day that the page shows by its headline if earlier.

    Some systems state the day on which a page was last published, and show the first one.
    """
    order = day_order(language, url)
    window = _window(place)
    times = [(date, "time") for date in _times(root, place, window, order)]
    lines = [
        (date, "visible")
        for date, is_changed in _date_lines(place, window, order)
        if not is_changed
    ]
    shown = [*times, *lines]
    if day := url_day(url):
        shown.append((day, "url"))
    if len({date.at.date() for date, _ in shown}) != 1:
        return stated
    date, source = shown[0]
    return PublishedDate(date, source) if date.at + _ANY_ZONE < stated.date.at else stated


def day_order(language: str, url: str = "") -> DayOrder:
    """Return how a page in this language (`en-US`, `de`) writes 3/4/2020.

    The address tells the country where the language does not.
    """
    tag = language.lower()
    if not tag or tag == "en":
        tag = _language_of(url) or tag
    if tag in _MONTH_FIRST:
        return "month first"
    if not tag or (tag.startswith("en") and not _ENGLISH_DAY_FIRST.match(tag)):
        return "unknown"
    return "day first"


def _language_of(url: str) -> str:
    """Return the language and country that an address names, or ''."""
    try:
        parts = urlsplit(url.lower())
    except ValueError:
        return ""
    if found := _LANGUAGE_IN_PATH.search(parts.path):
        return found[1]
    return "en-gb" if _DAY_FIRST_HOST.search(parts.netloc) else ""


def url_day(url: str) -> StatedDate | None:
    """Return the day in the path of an address, as in /2020/02/19/ or /2020-02-19-title."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    for found in _URL_DAY.finditer(path):
        year, mark, month, day = found.groups()
        # Eight digits in a row may be any number, unless they stand alone.
        alone = mark or len(found[0]) == 8
        if alone and (date := parse_stated_date(f"{year}-{int(month):02}-{int(day):02}")):
            return date
    return None


def _microdata(root: html.HtmlElement) -> Iterator[str]:
    for element in root.iter("time", "span", "abbr", "div", "p", "meta"):
        if element.get("itemprop") == "datePublished" or element.get("pubdate") is not None:
            yield (
                element.get("datetime")
                or element.get("content")
                or element.get("title")
                or visible_text(element)[:_MAX_SHOWN_DATE]
            )


def _window(place: BodyPlace) -> range:
    """Return the blocks beside the headline in which a date is the article's.

    Before the headline only its own surroundings count: the head of a page shows today's date.
    """
    first = place.kept[0] if place.kept else 0
    anchor = place.headline if place.headline >= 0 else first
    start = min(_surroundings(place.blocks, anchor), anchor)
    end = max(anchor, min(first, anchor + _AFTER_HEADLINE)) + _AFTER_HEADLINE
    return range(max(start, anchor - _BEFORE_HEADLINE), min(end, len(place.blocks.texts)))


def _surroundings(blocks: TextBlocks, number: int) -> int:
    """Return the first block of the element four levels above a block, below the root."""
    if number >= len(blocks.texts):
        return number
    around = blocks.holders[number]
    for _ in range(_LEVELS_ABOVE):
        around = blocks.parents[around] or around
    return blocks.starts[around] if around else number


def _nearest_time(
    root: html.HtmlElement, place: BodyPlace, window: range, order: DayOrder
) -> StatedDate | None:
    """Return the date of the `<time>` that stands closest to the headline."""
    anchor = place.headline if place.headline >= 0 else window.start
    found = _times(root, place, window, order)
    return min(found, key=lambda date: abs(found[date] - anchor), default=None)


def _times(
    root: html.HtmlElement, place: BodyPlace, window: range, order: DayOrder
) -> dict[StatedDate, int]:
    """Return the dates of the `<time>` elements near the headline, each with its first block."""
    found: dict[StatedDate, int] = {}
    times = list(root.iter("time", "relative-time", "time-ago"))
    numbers = dict(zip(place.blocks.elements, count())) if times else {}
    for element in times:
        at = _place(element, numbers, place.blocks)
        if at not in window:
            continue
        text = visible_text(element)
        date = parse_stated_date(element.get("datetime") or "") or find_shown_date(text, order)
        if date and not _MODIFIED_WORDS.search(text):
            found.setdefault(date, at)
    return found


def _place(
    element: html.HtmlElement, numbers: dict[html.HtmlElement, int], blocks: TextBlocks
) -> int:
    """Return the first block of the element, or of the closest block element around it."""
    for around in (element, *element.iterancestors()):
        if around in numbers:
            return blocks.starts[numbers[around]]
    return -1


def _is_list(place: BodyPlace, window: range, order: DayOrder) -> bool:
    """Return True if the lines show several days: those of the articles that a page lists."""
    lines = (place.blocks.texts[at] for at in window)
    short = (text for text in lines if len(text) <= _MAX_DATE_LINE)
    days = {date.at.date() for text in short if (date := find_shown_date(text, order))}
    return len(days) >= _LISTED_DAYS


def _shown_line(place: BodyPlace, window: range, order: DayOrder) -> StatedDate | None:
    """Return the date of the line closest to the headline, else of one right after the text."""
    anchor = place.headline if place.headline >= 0 else window.start
    near = sorted(window, key=lambda at: (at < anchor, abs(at - anchor)))
    if _is_list(place, window, order):
        return None
    last = place.kept[-1] if place.kept else window.stop
    after = range(last, min(last + _AFTER_TEXT + 1, len(place.blocks.texts)))
    shown = [*_date_lines(place, near, order), *_marked_lines(place, after.stop, order)]
    # Beside the headline, the day of the last change is the only day that some pages give.
    changed = [date for date, is_changed in shown if is_changed]
    later = _date_lines(place, after, order)
    stated = [date for date, is_changed in (*shown, *later) if not is_changed]
    known = (*stated, *_dateline(place, order), *changed, *_published_lines(place, order))
    return next(iter(known), None)


def _dateline(place: BodyPlace, order: DayOrder) -> Iterator[StatedDate]:
    """Yield the date that opens the text."""
    for number in place.kept[:2]:
        found = _DATELINE.match(place.blocks.texts[number])
        if (
            found
            and not _PREPOSITION.match(found[1])
            and (date := find_shown_date(found[1], order))
        ):
            yield date


def _published_lines(place: BodyPlace, order: DayOrder) -> Iterator[StatedDate]:
    """Yield the date of lines anywhere that call it the day of publication, if it is only one."""
    lines = [text for text in place.blocks.texts if len(text) <= _MAX_SHOWN_DATE]
    dates = [find_shown_date(text, order) for text in lines if _PUBLISHED_LINE.match(text)]
    known = [date for date in dates if date]
    if len({date.at.date() for date in known}) == 1:
        yield known[0]


def _date_lines(
    place: BodyPlace, numbers: Iterable[int], order: DayOrder
) -> Iterator[tuple[StatedDate, bool]]:
    """Yield the dates of short lines, and whether a line is about the last change."""
    kept = frozenset(place.kept)
    for at in numbers:
        text = place.blocks.texts[at]
        is_line = len(text) <= _MAX_DATE_LINE or _PUBLISHED_LINE.match(text) is not None
        is_sentence = at in kept and not is_line
        if is_sentence or len(text) > _MAX_SHOWN_DATE or _OTHER_DATE.search(text):
            continue
        if date := find_shown_date(text, order):
            yield date, _MODIFIED_WORDS.search(text) is not None


def _marked_lines(place: BodyPlace, end: int, order: DayOrder) -> Iterator[tuple[StatedDate, bool]]:
    """Yield the day of lines marked as dates up to the end of the text, if it is only one."""
    blocks = place.blocks
    marked = [
        at
        for at in range(end)
        if any(
            _DATE_CLASS.search(blocks.classes[element] or "")
            for element in (blocks.holders[at], blocks.parents[blocks.holders[at]])
        )
    ]
    found = list(_date_lines(place, marked, order))
    if len({date.at.date() for date, _ in found}) == 1:
        yield found[0]
