"""Render feed entries as RSS 2.0, Atom, RSS 1.0 (RDF) or JSON Feed, and feed lists as OPML."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from html import escape

from news_platform.sample.outlets import Outlet


@dataclass(frozen=True, slots=True)
class SampleEntry:
    """One entry of a feed; `published_at` None leaves the date out."""

    id: str
    link: str
    title: str
    summary: str
    author: str
    tags: tuple[str, ...]
    published_at: datetime | None


def render_feed(
    outlet: Outlet, entries: Sequence[SampleEntry], *, kind: str, now: datetime
) -> bytes:
    """Return the feed document in the encoding of the outlet's feed."""
    if kind == "json":
        return _json_feed(outlet, entries)
    text = _XML_KINDS[kind](outlet, entries, now)
    charset = outlet.feed.charset
    declared = f'<?xml version="1.0" encoding="{charset}"?>\n{text}'
    return declared.encode(charset, "xmlcharrefreplace")


def render_opml(feeds: Sequence[tuple[str, str]]) -> bytes:
    """Return an OPML list of (title, feed URL) pairs."""
    lines = "\n".join(
        f'    <outline type="rss" text="{escape(title)}" xmlUrl="{escape(url)}"/>'
        for title, url in feeds
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<opml version="2.0">
  <head><title>Feeds of the sample world</title></head>
  <body>
{lines}
  </body>
</opml>
""".encode()


def _rss(outlet: Outlet, entries: Sequence[SampleEntry], now: datetime) -> str:
    items = "\n".join(_rss_item(entry) for entry in entries)
    return f"""<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel>
<title>{escape(outlet.name)}</title>
<link>{outlet.origin}/</link>
<description>{escape(outlet.name)}</description>
<language>{outlet.language}</language>
<lastBuildDate>{format_datetime(now)}</lastBuildDate>
<ttl>60</ttl>
{items}
</channel>
</rss>
"""


def _rss_item(entry: SampleEntry) -> str:
    tags = "".join(f"<category>{escape(tag)}</category>" for tag in entry.tags)
    dated = entry.published_at and f"<pubDate>{format_datetime(entry.published_at)}</pubDate>"
    return f"""<item><title>{escape(entry.title)}</title>
<link>{escape(entry.link)}</link><guid isPermaLink="false">{escape(entry.id)}</guid>
<description>{escape(entry.summary)}</description>
<dc:creator>{escape(entry.author)}</dc:creator>{tags}{dated or ""}</item>"""


def _atom(outlet: Outlet, entries: Sequence[SampleEntry], now: datetime) -> str:
    items = "\n".join(_atom_entry(entry, now) for entry in entries)
    return f"""<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="{outlet.language}">
<title>{escape(outlet.name)}</title>
<id>{outlet.origin}/</id>
<link rel="self" href="{outlet.origin}{outlet.feed.path}"/>
<link rel="alternate" type="text/html" href="{outlet.origin}/"/>
<updated>{now.isoformat()}</updated>
{items}
</feed>
"""


def _atom_entry(entry: SampleEntry, now: datetime) -> str:
    at = (entry.published_at or now).isoformat()
    tags = "".join(f'<category term="{escape(tag)}"/>' for tag in entry.tags)
    return f"""<entry><title>{escape(entry.title)}</title><id>{escape(entry.id)}</id>
<link rel="alternate" type="text/html" href="{escape(entry.link)}"/>
<author><name>{escape(entry.author)}</name></author>{tags}
<published>{at}</published><updated>{at}</updated>
<summary type="html">{escape(f"<p>{escape(entry.summary)}</p>")}</summary></entry>"""


def _rdf(outlet: Outlet, entries: Sequence[SampleEntry], now: datetime) -> str:
    links = "".join(f'<rdf:li rdf:resource="{escape(entry.link)}"/>' for entry in entries)
    items = "\n".join(_rdf_item(entry, now) for entry in entries)
    return f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="{outlet.origin}{outlet.feed.path}">
<title>{escape(outlet.name)}</title>
<link>{outlet.origin}/</link>
<description>{escape(outlet.name)}</description>
<dc:language>{outlet.language}</dc:language>
<items><rdf:Seq>{links}</rdf:Seq></items>
</channel>
{items}
</rdf:RDF>
"""


def _rdf_item(entry: SampleEntry, now: datetime) -> str:
    return f"""<item rdf:about="{escape(entry.link)}"><title>{escape(entry.title)}</title>
<link>{escape(entry.link)}</link>
<description>{escape(entry.summary)}</description>
<dc:creator>{escape(entry.author)}</dc:creator>
<dc:date>{(entry.published_at or now).isoformat()}</dc:date></item>"""


_XML_KINDS: dict[str, Callable[[Outlet, Sequence[SampleEntry], datetime], str]] = {
    "rss": _rss,
    "atom": _atom,
    "rdf": _rdf,
}


def _json_feed(outlet: Outlet, entries: Sequence[SampleEntry]) -> bytes:
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": outlet.name,
        "home_page_url": f"{outlet.origin}/",
        "feed_url": outlet.origin + outlet.feed.path,
        "language": outlet.language,
        "items": [_json_item(entry) for entry in entries],
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def _json_item(entry: SampleEntry) -> dict[str, object]:
    item: dict[str, object] = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "summary": entry.summary,
        "content_html": f"<p>{escape(entry.summary)}</p>",
        "authors": [{"name": entry.author}],
        "tags": list(entry.tags),
    }
    if entry.published_at:
        item["date_published"] = entry.published_at.isoformat()
    return item
