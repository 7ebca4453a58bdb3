"""Small valid feeds and article pages in English for tests, each with a text of its own."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from email.utils import format_datetime
from html import escape

SENTENCES = (
    "The city council voted on Tuesday to repair the old bridge over the river.",
    "Engineers said the work would take about two years and cost nine million.",
    "Residents had complained for a long time about the noise of heavy lorries.",
    "A spokeswoman for the mayor called the decision an important step for the region.",
    "Critics of the plan want the money to be spent on schools and hospitals instead.",
)

WALL = (
    b"<html><head><title>Before you continue</title></head><body><h1>Before you continue</h1>"
    b"<p>We and our partners store cookies on your device, to show what you like to read and to "
    b"measure how often it is read. You can accept all of them, or choose what is stored.</p>"
    b"<p>Read more about it in our notice on privacy, which also names all our partners.</p>"
    b"<form><button>Accept all</button></form></body></html>"
)
STUB = "<html><head><title>{0}</title></head><body><article><h1>{0}</h1><p>{1}</p></article></body>"


def rss(
    items: Iterable[tuple[str, str, datetime | None]], *, title: str = "The Test Post"
) -> bytes:
    """Return an RSS 2.0 feed of (link, title, published)."""
    entries = "".join(
        f"<item><title>{escape(name)}</title><link>{escape(link)}</link>"
        f"<guid>{escape(link)}</guid>"
        f"<description>{SENTENCES[0]} {SENTENCES[1]}</description>"
        + (f"<pubDate>{format_datetime(published)}</pubDate>" if published else "")
        + "</item>"
        for link, name, published in items
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>{title}</title>'
        f"<link>https://post.example/</link><language>en-gb</language>{entries}</channel></rss>"
    ).encode()


def items(
    names: Iterable[str], *, host: str = "post.example", newest: datetime
) -> list[tuple[str, str, datetime | None]]:
    """Return feed items for articles of one site, an hour apart, newest first."""
    return [
        (f"https://{host}/{name}", f"About {name}", newest - timedelta(hours=position))
        for position, name in enumerate(names)
    ]


def page(
    topic: str,
    *,
    published: str | None = "2025-11-03T08:00:00Z",
    author: str = "Ada Writer",
    extra: str = "",
) -> bytes:
    """Return an article page whose text is about `topic` alone."""
    date = f'<meta property="article:published_time" content="{published}">' if published else ""
    paragraphs = "".join(
        f"<p>On {escape(topic)}, part {number}: {sentence} Reported from {escape(topic)}.</p>"
        for number, sentence in enumerate(SENTENCES, start=1)
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><title>{escape(topic)} - Post</title>'
        f'<meta property="og:title" content="News of {escape(topic)}">'
        f'<meta property="og:description" content="All about {escape(topic)}.">'
        f'<meta name="author" content="{author}">{date}'
        f'<meta property="article:section" content="Local"></head>'
        f'<body><nav><a href="/">Home</a></nav><article><h1>News of {escape(topic)}</h1>'
        f"{paragraphs}{extra}</article><footer>Imprint</footer></body></html>"
    ).encode()


def home_page(topic: str = "A Example - Home") -> bytes:
    """Return a front page of teasers."""
    teasers = "".join(f"<li><a href='/{n}'>Teaser {n} of what we report</a></li>" for n in range(9))
    return f"<html><head><title>{topic}</title></head><body><ul>{teasers}</ul></body>".encode()
