"""Find the people who wrote an article, in the order that the page names them.

The first source that names people decides: JSON-LD, meta elements, then the byline that stands
first. Dates, roles and degrees are not names; an organisation counts only if nobody else signs.
"""

import re
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

from lxml import html

from news_platform.articles.blocks import INLINE
from news_platform.articles.body import BodyPlace
from news_platform.html import jsonld
from news_platform.html.jsonld import JsonObject, MetaTags
from news_platform.text.normalize import normalize_letters, normalize_spaces

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
    r"|press\w*|agency|agentur|agencies|inc|llc|ltd|gmbh|e\.\s?v|phd|ph\.d|mba|dvm|msc|ceo"
    r"|founder|director|manager|specialist|analyst|columnist|photographer|university|magazine"
    r"|twitter|facebook|instagram|linkedin|email|january|february|march|april|june|july|august"
    r"|september|october|november|december|januar|februar|märz|mai|juni|juli|oktober|dezember"
    r"|hinterlasse\w*|in uncategorized|biography|bio|contact|subscribe|the|this|all|verlag"
    r"|login|logout|settings|marketing|coordinator|producer|attorney|consultant|certified|senior"
    r"|chief|officer|head|professor|security|privacy|lesezeit|articles|reviewed|copied|link)\b",
    re.IGNORECASE,
)
# Degrees are written in capitals; Md and Ma are names.
_DEGREE = re.compile(r"\b(?:MD|MA|RN|BA|BSN|LVT|VMD|JD)\b")
_WRITTEN_BY = re.compile(
    r"written|verfasst|geschrieben|écrit|escrit|posted|by$|von$", re.IGNORECASE
)
# Words of a class that marks who wrote the article: `author`, `story-byline`, `metaInfoAuthorList`.
_BYLINE_WORD_LIST = """
author authors authorname authored byline bylines autor autoren autorin auteur writer vcard fn
creator contributor contributors
"""
_BYLINE_WORDS = frozenset(_BYLINE_WORD_LIST.split())
# Such a class with one of these words marks a picture, a biography or a box about the author.
_NOT_BYLINE_WORD_LIST = """
bio biography box image img avatar photo picture title role job position description desc social
twitter follow more posts articles related archive comment comments label heading footer count icon
email wrapper authority
"""
_NOT_BYLINE_WORDS = frozenset(_NOT_BYLINE_WORD_LIST.split())
_NAME_WORDS = frozenset(("name", "link", "fn"))
_CLASS_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_AUTHOR_LINK = re.compile(
    r"/(?:authors?|autor(?:en)?|auteurs?|people|staff|by|profiles?|contributors?|journalists?"
    r"|redaktion|team|writers?|reporters?)/[^/?#]+",
    re.IGNORECASE,
)
_OTHER_PLACE = re.compile(
    r"comment|kommentar|related|sidebar|footer|widget|recommend|teaser|card|list|reply|popular",
    re.IGNORECASE,
)
_LIST_OF_AUTHORS = re.compile(r"author|byline|autor", re.IGNORECASE)
_BYLINE = re.compile(
    r"^\W*(?:(?:written|posted|published|words|story|text|geschrieben|verfasst)\s+)?"
    r"(?:by|von|par|por|di|door|av|af|text|autor(?:in)?|author|автор|作者|记者|記者|文)"
    r"(?:\s*[:：]\s*|\s+)(.{2,80})",
    re.IGNORECASE,
)
# What stands before a name: "Posted on September 21, 2020 by".
_DATE_HEAD = re.compile(r"^[^,;|]{0,40}\d.{0,40}?\b(?:by|von|par|por)\s+", re.IGNORECASE)
# What follows a name in a byline: a date, a time, a separator.
_DATE_TAIL = re.compile(r"\s*(?:\bon\b|\bam\b|[|•·]|\d).*$")
_PERSON = re.compile(
    r"(?:[^\W\d_a-zß-ÿа-я][\w.'’-]*)(?:\s+(?:van|von|de|der|den|la|le|da|di|al|bin|el|zu|ter))*"
    r"(?:\s+[^\W\d_a-zß-ÿа-я][\w.'’-]*){1,3}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,5}"
)
# Chinese names have two to four characters, and spaces stand between them.
_CHINESE_NAMES = r"([\u4e00-\u9fff]{2,4}(?:[\s、]+[\u4e00-\u9fff]{2,4}){0,5})"
_CHINESE_BYLINE = re.compile(
    rf"(?:作者|记者|記者|执笔人?|撰稿|撰文)\s*[:：]?\s*{_CHINESE_NAMES}(?=$|[\s)）\]】/|,，发報报摄])"
)
# The last words of an article: "(Reporter Zhang Qian)", or only the name.
_CHINESE_END = re.compile(
    rf"[(（][^()（）]{{0,8}}?(?:作者|记者|記者|文|撰稿)?\s*[:：/]?\s*{_CHINESE_NAMES}[)）]\s*$"
)
_CHINESE_NAME = re.compile(r"[\u4e00-\u9fff]{2,4}")
# A Chinese byline further from the headline is about something else.
_CHINESE_LINES = 12
_MAX_NAME_LENGTH = 60
_MAX_NAME_WORDS = 6
# A longer text with an author's class is a biography.
_MAX_BYLINE = 160


def article_authors(
    root: html.HtmlElement, article: JsonObject, meta: MetaTags, *, site_names: Set[str]
) -> tuple[str, ...]:
    """Return the authors; `site_names` are the normalized names of the site, which do not count."""
    site = site_names | _publishers(meta)
    signed = jsonld.organisations(article.get("author"))
    fallback: tuple[str, ...] = tuple(dict.fromkeys(jsonld.names(signed)))
    for values in _sources(root, article, meta):
        names = tuple(
            dict.fromkeys(name for value in values for name in _names_before_site(value, site))
        )
        people = tuple(name for name in names if normalize_letters(name) not in site)
        # Where an organisation signs, only what is clearly a person's name says more.
        is_clear = not signed or all(map(_PERSON.fullmatch, people))
        if people and is_clear and not all(map(_is_organisation, people)):
            return tuple(name for name in people if not _is_organisation(name))
        fallback = fallback or people or names
    return fallback


def _publishers(meta: MetaTags) -> frozenset[str]:
    """Return the normalized names of those who hold the copyright: they publish the page."""
    stated = meta.all("copyright", "publisher", "dc.publisher", "dcterms.publisher", "dc.rights")
    return frozenset(
        normalize_letters(name) for value in stated for name in split_names(_YEARS.sub(" ", value))
    )


_YEARS = re.compile(r"©|\(c\)|copyright|\b(?:19|20)\d\d\b|all rights reserved", re.IGNORECASE)


def _names_before_site(written: str, site: Set[str]) -> Iterator[str]:
    """Yield the names in a byline; what follows the name of the site is its address."""
    names = list(split_names(written))
    for name in names:
        if normalize_letters(name) in site:
            # A byline of the site alone is still a name.
            if name is names[0]:
                yield name
            return
        yield _without_site(name, site)


def _without_site(name: str, site: Set[str]) -> str:
    """Return a name without the site's name at its end, as in "Ada Writer THE POST"."""
    words = name.split()
    for size in range(2, len(words)):
        if normalize_letters(" ".join(words[size:])) in site:
            return " ".join(words[:size])
    return name


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
    return _chinese_authors(place, anchor, first)


def _chinese_authors(place: BodyPlace, anchor: int, first: int) -> tuple[str, ...]:
    """Return the people of a Chinese byline near the headline, or at the end of the text."""
    texts = place.blocks.texts
    near = texts[max(anchor - 3, 0) : max(anchor, first) + _CHINESE_LINES]
    last = [texts[number] for number in place.kept[-2:]]
    for pattern, lines in ((_CHINESE_BYLINE, near), (_CHINESE_END, last)):
        for text in lines:
            is_line = pattern is _CHINESE_END or len(text) <= _MAX_BYLINE
            if not text.isascii() and is_line and (found := pattern.search(text)):
                return tuple(_CHINESE_NAME.findall(found[1]))
    return ()


def _sources(
    root: html.HtmlElement, article: JsonObject, meta: MetaTags
) -> Iterator[Iterable[str]]:
    """Yield what the page says about its authors, source by source."""
    stated = (article.get("author"), article.get("creator"))
    yield from (jsonld.names(jsonld.people(value)) for value in stated)
    for name in _AUTHOR_META:
        yield (value for value in meta.all(name) if not value.startswith("http"))
    if _WRITTEN_BY.search(meta.first("twitter:label1")):
        yield meta.all("twitter:data1")
    yield from _bylines(root)


def split_names(written: str) -> Iterator[str]:
    """Yield the names in a byline, without prefixes, roles, degrees and dates."""
    text = _DATE_HEAD.sub("", _IN_BRACKETS.sub(" ", written), count=1)
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
    is_role = len(words) == 1 and (_ROLE.fullmatch(text) or _DEGREE.fullmatch(text))
    return not _NOT_A_NAME.search(text) and not is_role


def _is_organisation(name: str) -> bool:
    return _ROLE.search(name) is not None or _DEGREE.search(name) is not None


def _bylines(root: html.HtmlElement) -> Iterator[Iterable[str]]:
    """Yield the names of bylines, surest first; those of comments and teasers do not count."""
    marked: list[list[tuple[html.HtmlElement, str]]] = [[], [], [], []]
    for element in root.iter(*_BYLINE_TAGS):
        rank = _byline_rank(element)
        if rank is not None and not _is_elsewhere(element, is_marked=rank == 0):
            text = _byline_text(element)
            if text and len(text) <= _MAX_BYLINE:
                marked[rank].append((element, text))
    for found in marked:
        yield from _groups(found)


_BYLINE_TAG_NAMES = "a span div p address li strong em cite small b td"
_BYLINE_TAGS = tuple(_BYLINE_TAG_NAMES.split())


def _byline_rank(element: html.HtmlElement) -> int | None:
    """Return 0 for elements marked as author, 1 for a class for names, 2 for bylines, 3 for links.

    Links count if they lead to somebody's profile.
    """
    if "author" in (element.get("rel") or "") or element.get("itemprop") in ("author", "creator"):
        return 0
    rank = _class_rank(element.get("class") or "")
    if rank is None and element.tag == "a" and _AUTHOR_LINK.search(element.get("href") or ""):
        return 3
    return rank


@lru_cache(maxsize=20_000)
def _class_rank(names: str) -> int | None:
    ranks = []
    for name in names.split():
        words = {word.lower() for word in _CLASS_WORD.findall(name)}
        if words & _BYLINE_WORDS and not words & _NOT_BYLINE_WORDS:
            ranks.append(1 if words & _NAME_WORDS else 2)
    return min(ranks, default=None)


def _byline_text(element: html.HtmlElement) -> str:
    """Return the text of a byline, with a bar between parts that a page shows apart."""
    return normalize_spaces("".join(_byline_parts(element)))


def _byline_parts(element: html.HtmlElement) -> Iterator[str]:
    yield element.text or ""
    before: html.HtmlElement | None = None
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _UNREAD:
            # Inline elements without a space between them are apart too: a name and a role.
            touches = before is not None and not before.tail
            bar = " | " if child.tag not in INLINE or touches else ""
            yield bar
            yield from _byline_parts(child)
            yield bar
            before = child
        yield child.tail or ""


_UNREAD = frozenset(("script", "style", "svg", "noscript", "template", "button"))


def _is_elsewhere(element: html.HtmlElement, *, is_marked: bool) -> bool:
    """Return True for the names of comments, teasers and menus.

    Some articles have their byline in a `<footer>` or `<aside>`; there only `rel="author"` counts.
    """
    for around in element.iterancestors():
        if around.tag == "nav" or (around.tag in ("aside", "footer") and not is_marked):
            return True
        if around.tag in ("body", "article", "main"):
            return False
        names = f"{around.get('class') or ''} {around.get('id') or ''}"
        # A list of authors is no list of articles.
        if _OTHER_PLACE.search(names) and not _LIST_OF_AUTHORS.search(names):
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
