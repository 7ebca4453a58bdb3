"""A page in, the people who wrote its article out, in the order that the page names them.

The first source that names people decides: JSON-LD, meta elements, then the byline that stands
first. Dates, roles and degrees are not names; an organisation counts only if nobody else signs.
"""

import re
from collections.abc import Iterable, Iterator, Set

from lxml import html

from news_platform.articles.blocks import visible_text
from news_platform.articles.body import BodyPlace
from news_platform.articles.meta_tags import MetaTags
from news_platform.html import jsonld
from news_platform.html.jsonld import JsonObject
from news_platform.text.normalize import normalize_letters

_AUTHOR_META = (
    "author",
    "article:author",
    "parsely-author",
    "dc.creator",
    "dcterms.creator",
    "sailthru.author",
    "citation_author",
    "byl",
    "cxenseparse:author",
)
_SEPARATOR = re.compile(
    r"\s*[,|•·/]\s+|\s*[;|•·、]\s*|\s+(?:and|und|og|och|y|et|e|en|i|и|&|with|mit)\s+|\s+[-–—]\s+",
    re.IGNORECASE,
)
_PREFIX = re.compile(
    r"^\W*(?:(?:written|posted|published|authored|reviewed|edited|guide|words|story|report|review"
    r"|text|interview|article|opinion|geschrieben|verfasst|veröffentlicht|publicado|escrito|rédigé"
    r"|publié|ein beitrag|ein kommentar|eine analyse|added|submitted|created|contributed)\s*)?"
    r"(?:(?:by|von|vom|par|por|di|av|af|door|autore?|autorin|author|auteur|автор|text|foto|words"
    r"|interview|redaktion|writer|verfasser|作者|記者|记者|文)\b\s*:?\s*|[:：]\s*)",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"\s*[(\[（][^)\]）]*[)\]）]\s*")
# A name may end in a number (`BR24`), but a number by itself is part of a date.
_NOT_A_NAME = re.compile(r"https?:|www\.|@|[{}<>=]|(?<!\w)\d|^\W*$", re.IGNORECASE)
# Words that only labels, roles, degrees and places of publication have.
_ROLE = re.compile(
    r"\b(?:editor\w*|writer|author|autor\w*|staff|reporter\w*|correspondent\w*|contributor\w*|expert"
    r"|redakt\w*|redaktion|journalist\w*|team|admin\w*|guest|follow|share|read|more|view|posts?"
    r"|comments?|kommentare?|profile|about|updated?|published|posted|written|by|min|uhr|news|online"
    r"|press\w*|agency|agentur|agencies|inc|llc|ltd|gmbh|e\.\s?v|phd|ph\.d|md|mba|dvm|ma|msc|jr|ceo"
    r"|founder|director|manager|specialist|analyst|columnist|photographer|university|magazine"
    r"|twitter|facebook|instagram|linkedin|email|january|february|march|april|june|july|august"
    r"|september|october|november|december|januar|februar|märz|mai|juni|juli|oktober|dezember"
    r"|hinterlasse\w*|in uncategorized|biography|bio|contact|subscribe|the|this|all|verlag)\b",
    re.IGNORECASE,
)
_WRITTEN_BY = re.compile(
    r"written|verfasst|geschrieben|écrit|escrit|posted|by$|von$", re.IGNORECASE
)
_BYLINE_CLASS = re.compile(
    r"(?:^|[\s_-])(?:authors?|by-?lines?|autor\w*|auteur|writer|vcard|fn|creator|contributors?"
    r"|post-?author|entry-?author|article-?author)"
    r"(?:[_-]+(?:name|link|title|info|text|meta|by))*(?:$|[\s_-])",
    re.IGNORECASE,
)
_AUTHOR_LINK = re.compile(
    r"/(?:authors?|autor(?:en)?|auteurs?|people|staff|by|profiles?|contributors?|journalists?"
    r"|redaktion|team|writers?)/[^/?#]+",
    re.IGNORECASE,
)
_OTHER_PLACE = re.compile(
    r"comment|kommentar|related|sidebar|footer|widget|recommend|teaser|card|list|reply|popular",
    re.IGNORECASE,
)
_BYLINE = re.compile(
    r"^\W*(?:(?:written|posted|published|words|story|text|geschrieben|verfasst)\s+)?"
    r"(?:by|von|par|por|di|door|av|af|text|autor(?:in)?|author|автор|作者|记者|記者|文)"
    r"(?:\s*[:：]\s*|\s+)(.{2,80})",
    re.IGNORECASE,
)
# What follows a name in a byline: a date, a time, a separator.
_DATE_TAIL = re.compile(r"\s*(?:\bon\b|\bam\b|[|•·]|\d).*$")
_PERSON = re.compile(
    r"(?:[^\W\d_a-zß-ÿа-я][\w.'’-]*)(?:\s+(?:van|von|de|der|den|la|le|da|di|al|bin|el|zu|ter))*"
    r"(?:\s+[^\W\d_a-zß-ÿа-я][\w.'’-]*){1,3}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,5}"
)
_MAX_NAME_LENGTH = 60
_MAX_NAME_WORDS = 6
# A longer text with an author's class is a biography.
_MAX_BYLINE = 160


def article_authors(
    root: html.HtmlElement, article: JsonObject, meta: MetaTags, *, site_names: Set[str]
) -> tuple[str, ...]:
    """Return the authors; `site_names` are the normalized names of the site, which do not count."""
    fallback: tuple[str, ...] = ()
    for values in _sources(root, article, meta):
        names = tuple(dict.fromkeys(name for value in values for name in split_names(value)))
        people = tuple(name for name in names if normalize_letters(name) not in site_names)
        if people and not all(map(_is_organisation, people)):
            return tuple(name for name in people if not _is_organisation(name))
        fallback = fallback or people or names
    return fallback


def shown_authors(place: BodyPlace) -> tuple[str, ...]:
    """Return the people of a line such as "By Ada Writer" between the headline and the text."""
    first = place.kept[0] if place.kept else 0
    anchor = place.headline if place.headline >= 0 else first
    for text in place.blocks.texts[max(anchor - 3, 0) : max(anchor, first) + 6]:
        line = _BYLINE.match(text) if len(text) <= _MAX_BYLINE else None
        names = tuple(split_names(_DATE_TAIL.sub("", line[1]))) if line else ()
        people = tuple(name for name in names if _PERSON.fullmatch(name))
        if people and not any(map(_is_organisation, people)):
            return people
    return ()


def _sources(
    root: html.HtmlElement, article: JsonObject, meta: MetaTags
) -> Iterator[Iterable[str]]:
    yield jsonld.names(article.get("author"))
    yield jsonld.names(article.get("creator"))
    yield (value for value in meta.all(*_AUTHOR_META) if not value.startswith("http"))
    if _WRITTEN_BY.search(meta.first("twitter:label1")):
        yield meta.all("twitter:data1")
    yield from _bylines(root)


def split_names(written: str) -> Iterator[str]:
    """Yield the names in a byline, without prefixes, roles, degrees and dates."""
    text = _IN_BRACKETS.sub(" ", written)
    for _ in range(2):  # "Written by Autor: ..." has two prefixes
        text = _PREFIX.sub("", text, count=1)
    for part in _SEPARATOR.split(text):
        name = part.strip(" \t.,:;-–—|\"'“”*")
        if is_name(name):
            yield name


def is_name(text: str) -> bool:
    """Return True if a short text can be the name of a person or of an organisation that signs."""
    words = text.split()
    if not words or len(text) > _MAX_NAME_LENGTH or len(words) > _MAX_NAME_WORDS or len(text) < 2:
        return False
    return not _NOT_A_NAME.search(text) and not (len(words) == 1 and _ROLE.fullmatch(text))


def _is_organisation(name: str) -> bool:
    return _ROLE.search(name) is not None


def _bylines(root: html.HtmlElement) -> Iterator[Iterable[str]]:
    """Yield the names of bylines, surest first; those of comments and teasers do not count."""
    marked: list[list[tuple[html.HtmlElement, str]]] = [[], [], []]
    for element in root.iter(*_BYLINE_TAGS):
        rank = _byline_rank(element)
        if rank is not None and not _is_elsewhere(element):
            text = visible_text(element)
            if text and len(text) <= _MAX_BYLINE:
                marked[rank].append((element, text))
    for found in marked:
        yield from _groups(found)


_BYLINE_TAGS = (
    "a",
    "span",
    "div",
    "p",
    "address",
    "li",
    "strong",
    "em",
    "cite",
    "small",
    "b",
    "td",
)


def _byline_rank(element: html.HtmlElement) -> int | None:
    """Return 0 for elements marked as author, 1 for such a class, 2 for a link to a profile."""
    if "author" in (element.get("rel") or "") or element.get("itemprop") in ("author", "creator"):
        return 0
    if _BYLINE_CLASS.search(element.get("class") or ""):
        return 1
    if element.tag == "a" and _AUTHOR_LINK.search(element.get("href") or ""):
        return 2
    return None


def _is_elsewhere(element: html.HtmlElement) -> bool:
    for around in element.iterancestors():
        if around.tag in ("aside", "footer", "nav"):
            return True
        if around.tag in ("body", "article", "main"):
            return False
        if _OTHER_PLACE.search(f"{around.get('class') or ''} {around.get('id') or ''}"):
            return True
    return False


def _groups(found: list[tuple[html.HtmlElement, str]]) -> Iterator[Iterable[str]]:
    """Yield the first byline with its siblings: several authors stand side by side."""
    for element, text in found:
        beside = [other for near, other in found if near.getparent() is element.getparent()]
        names = list(dict.fromkeys(beside)) if len(beside) > 1 else [text]
        if any(any(split_names(name)) for name in names):
            yield names
            return
