"""Read what an entry of a feed carries beside its link: text, names, tags, images, enclosures."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from news_platform.html.links import join_link
from news_platform.text.normalize import normalize_spaces, scrub_text, without_meter_lines

WEB = ("http://", "https://")
_TAG = re.compile(r"<[a-zA-Z/!][^>]*>")
# Some summaries hold the whole article; the beginning is enough to detect the language.
_MAX_MARKUP = 2_000
# Some feeds carry whole books; an article is shorter.
_MAX_TEXT = 200_000
_MAX_NAMES = 50
_MAX_ENCLOSURES = 20
# A description of this length is the article itself: many feeds have no content:encoded.
_WHOLE_TEXT = 1_000
_HIDDEN = re.compile(r"<(script|style|noscript)\b.*?</\1\s*>|<!--.*?-->", re.I | re.S)
_BLOCK_END = re.compile(
    r"</(?:p|div|li|h[1-6]|blockquote|tr|figure|figcaption|section|article|ul|ol|table|pre)\s*>"
    r"|<(?:br|hr|p|div|li|h[1-6])\b[^>]*>",
    re.I,
)
_IMAGE = re.compile(r"<img\b[^>]*?\bsrc\s*=\s*[\"']?([^\"'\s>]+)", re.I)
# RSS's own author element is an address with a name: `ann@post.example (Ann Writer)`.
_ADDRESS = re.compile(r"^\S+@\S+\s*\(([^()]+)\)$")


@dataclass(frozen=True, slots=True)
class FeedContent:
    """What an entry carries; `text` is '' unless the feed has more than a summary.

    `enclosures` are `URL TYPE BYTES`, as far as the feed states them. `is_metered` means that the
    text ends with a request to subscribe, which is left out.
    """

    text: str = ""
    authors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    image_url: str = ""
    enclosures: tuple[str, ...] = ()
    comments_url: str = ""
    is_metered: bool = False


def plain(markup: Any) -> str:
    """Return the text of a title or summary on one line, without tags and entities."""
    if not isinstance(markup, str):
        return ""
    # Titles are often escaped twice: once for XML, once for the HTML inside.
    text = unescape(markup[:_MAX_MARKUP])
    if "<" in text:
        text = unescape(_TAG.sub(" ", text))
    # JSON feeds can spell lone surrogates and NUL, which no XML parser lets through.
    return normalize_spaces(scrub_text(text))


def parse_content(entry: Mapping[str, Any], *, url: str) -> FeedContent:
    """Return what an entry of fastfeedparser or feedparser carries; `url` is that of the feed."""
    markup = _markup(entry)
    text, is_metered = without_meter_lines(text_of_markup(markup))
    enclosures = tuple(_enclosures(entry, url=url))[:_MAX_ENCLOSURES]
    return FeedContent(
        text=text,
        authors=tuple(dict.fromkeys(_authors(entry)))[:_MAX_NAMES],
        tags=tuple(dict.fromkeys(_tags(entry)))[:_MAX_NAMES],
        image_url=_image(entry, markup or _string(entry.get("description")), enclosures, url=url),
        enclosures=enclosures,
        comments_url=_media_link(entry.get("comments"), url=url),
        is_metered=is_metered,
    )


def text_of_markup(markup: str) -> str:
    """Return the text of an HTML fragment, one paragraph per line."""
    if "<" not in markup and "&lt;" in markup:
        markup = unescape(markup)
    markup = _HIDDEN.sub(" ", markup[:_MAX_TEXT])
    # Line ends of the source mean nothing; the elements of the page end a paragraph.
    lines = _BLOCK_END.sub("\x1e", markup.replace("\n", " ")) if "<" in markup else markup
    parts = re.split("[\x1e\n]", lines)
    texts = (normalize_spaces(scrub_text(unescape(_TAG.sub("", part)))) for part in parts)
    return "\n".join(text for text in texts if text)


def _markup(entry: Mapping[str, Any]) -> str:
    """Return the longest content of the entry, or its description if that is a whole text."""
    contents = [
        _string(part.get("value"))
        for part in entry.get("content") or ()
        if isinstance(part, Mapping)
    ]
    longest = max(contents, key=len, default="")
    about = _string(entry.get("summary")) or _string(entry.get("description"))
    if len(about) >= max(len(longest), _WHOLE_TEXT):
        return about
    return longest


def _authors(entry: Mapping[str, Any]) -> Iterator[str]:
    found = entry.get("authors") or ()
    named = [part.get("name") for part in found if isinstance(part, Mapping)]
    for name in named or [entry.get("author")]:
        text = _plain(name)
        address = _ADDRESS.match(text)
        text = address[1] if address else text
        if text and "@" not in text:
            yield text


def _tags(entry: Mapping[str, Any]) -> Iterator[str]:
    for part in entry.get("tags") or ():
        if isinstance(part, Mapping) and (text := _plain(part.get("label") or part.get("term"))):
            yield text


def _enclosures(entry: Mapping[str, Any], *, url: str) -> Iterator[str]:
    parts = [*mappings(entry.get("enclosures")), *mappings(entry.get("media_content"))]
    parts += [link for link in mappings(entry.get("links")) if link.get("rel") == "enclosure"]
    seen = set()
    for part in parts:
        link = _media_link(part.get("url") or part.get("href"), url=url)
        kind = _string(part.get("type")) or _string(part.get("medium"))
        if link and link not in seen:
            seen.add(link)
            size = str(part.get("length") or part.get("filesize") or "")
            yield " ".join(filter(None, (link, kind.replace(" ", ""), size if kind else "")))


def _image(entry: Mapping[str, Any], markup: str, enclosures: Iterable[str], *, url: str) -> str:
    """Return the stated image, a thumbnail, an enclosed image, or the first one in the text."""
    image = entry.get("image")
    stated = image.get("href") if isinstance(image, Mapping) else image
    thumbnails = [part.get("url") for part in mappings(entry.get("media_thumbnail"))]
    enclosed = [one.split(" ")[0] for one in enclosures if " image" in one]
    shown = _IMAGE.search(markup)
    candidates = (stated, *enclosed, *thumbnails, unescape(shown[1]) if shown else None)
    return next((link for link in (_media_link(it, url=url) for it in candidates) if link), "")


def mappings(parts: Any) -> list[Mapping[str, Any]]:
    """Return the parts of a list that are mappings."""
    return [part for part in parts or () if isinstance(part, Mapping)]


def _media_link(link: Any, *, url: str) -> str:
    text = scrub_text(_string(link)).strip()
    if not text or any(character.isspace() for character in text):
        return ""
    absolute = join_link(url, text) if url else text
    return absolute if absolute.startswith(WEB) else ""


def _plain(value: Any) -> str:
    return normalize_spaces(scrub_text(unescape(_TAG.sub(" ", _string(value)))))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
