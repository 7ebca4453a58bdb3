"""Render articles and front pages as HTML, in three layouts with the clutter of real pages."""

from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape

from news_platform.sample.markup import article_metadata, head, local_time
from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import Outlet
from news_platform.sample.story import phrasebook

SECTIONS = ("politics", "economy", "sports", "science", "technology", "culture", "local")


def article_page(article: SampleArticle, related: Sequence[SampleArticle]) -> bytes:
    """Return the page of an article in the encoding of its outlet."""
    layout = _LAYOUTS[article.outlet.layout]
    top = head(
        article.outlet,
        title=article.story.headline,
        url=article.url,
        extra=article_metadata(article),
    )
    return _document(article.outlet, top + layout(article, related))


def front_page(outlet: Outlet, articles: Sequence[SampleArticle], *, section: str = "") -> bytes:
    """Return the front page of the outlet or of a section, newest articles first."""
    labels = phrasebook(outlet.language).labels
    title = labels[section or "home"]
    teasers = "\n".join(
        f'<section class="teaser"><h2><a href="{escape(article.path)}">'
        f"{escape(article.story.headline)}</a></h2>\n<p>{escape(article.story.lead)}</p></section>"
        for article in articles
    )
    body = f"<main>\n<h1>{escape(title)}</h1>\n{teasers}\n</main>"
    top = head(outlet, title=title, url=f"{outlet.origin}/{section}")
    return _document(outlet, f"{top}\n<body>\n{_masthead(outlet)}\n{body}\n{_footer(outlet)}")


def missing_page(outlet: Outlet) -> bytes:
    """Return the page for a URL that does not exist."""
    labels = phrasebook(outlet.language).labels
    body = f"<h1>{escape(labels['not_found'])}</h1>\n<p>{escape(labels['not_found_text'])}</p>"
    top = head(outlet, title=labels["not_found"], url=outlet.origin + "/")
    return _document(outlet, f"{top}\n<body>\n{body}\n{_footer(outlet)}")


def moved_page(location: str) -> bytes:
    """Return the body of a redirect."""
    link = escape(location)
    return f'<html><body>Moved: <a href="{link}">{link}</a></body></html>\n'.encode()


def script_only_page(outlet: Outlet) -> bytes:
    """Return a page that is empty without JavaScript."""
    top = head(outlet, title=outlet.name, url=outlet.origin + "/app")
    return _document(outlet, f'{top}\n<body><div id="root"></div><script>start()</script>')


def _document(outlet: Outlet, content: str) -> bytes:
    direction = ' dir="rtl"' if outlet.language == "ar" else ""
    page = f'<!DOCTYPE html>\n<html lang="{outlet.language}"{direction}>\n{content}</body>\n</html>'
    return f"{page}\n".encode(outlet.charset, "xmlcharrefreplace")


def _classic(article: SampleArticle, related: Sequence[SampleArticle]) -> str:
    outlet = article.outlet
    labels = phrasebook(outlet.language).labels
    return f"""
<body>
<div class="cookie-bar" role="dialog"><p>{labels["cookies"]}</p>
<button>{labels["accept"]}</button></div>
{_masthead(outlet)}
<main>
<article>
<h1>{escape(article.story.headline)}</h1>
<p class="byline">{labels["by"]} {escape(article.author)} · {_published(article)}</p>
{_text(article)}
</article>
<aside><h2>{labels["related"]}</h2>{_links(related)}</aside>
</main>
{_footer(outlet)}"""


def _modern(article: SampleArticle, related: Sequence[SampleArticle]) -> str:
    outlet = article.outlet
    labels = phrasebook(outlet.language).labels
    return f"""
<body class="story-page">
{_masthead(outlet)}
<div class="layout"><div class="layout__main">
<article class="story" itemscope itemtype="https://schema.org/NewsArticle">
<header class="story__header"><span class="kicker">{labels[article.story.topic]}</span>
<h1 class="story__title">{escape(article.story.headline)}</h1>
<div class="meta"><a rel="author" href="/authors">{escape(article.author)}</a>
{_published(article)}</div></header>
<ul class="share"><li><a href="#fb">{labels["share"]}</a></li><li><a href="#mail">@</a></li></ul>
<div class="story__body">
{_text(article)}
</div>
</article></div>
<div class="layout__side sidebar"><div class="promo">{labels["newsletter"]}</div>
<h3>{labels["related"]}</h3>{_links(related)}</div></div>
<script>window.story = {{number: {article.number}}};</script>
{_footer(outlet)}"""


def _plain(article: SampleArticle, related: Sequence[SampleArticle]) -> str:
    outlet = article.outlet
    labels = phrasebook(outlet.language).labels
    stated = "" if outlet.metadata == "none" else f"<br>{_published(article)}"
    return f"""
<body>
<div id="top"><a href="/">{escape(outlet.name)}</a> | {_section_links(outlet)}
| {labels["search"]}</div>
<div id="content">
<h1>{escape(article.story.headline)}</h1>
<p class="author"><i>{labels["by"]} {escape(article.author)}</i>{stated}</p>
{_text(article)}
</div>
<div id="more"><b>{labels["related"]}</b>{_links(related)}</div>
{_footer(outlet)}"""


_LAYOUTS: dict[str, Callable[[SampleArticle, Sequence[SampleArticle]], str]] = {
    "classic": _classic,
    "modern": _modern,
    "plain": _plain,
}


def _text(article: SampleArticle) -> str:
    paragraphs = [f"<p>{escape(text)}</p>" for text in article.story.paragraphs]
    if article.mentions:
        lead_in = phrasebook(article.outlet.language).labels["reported_first"]
        host = article.mentions.split("/")[2]
        link = f'<a href="{escape(article.mentions)}">{host}</a>'
        paragraphs.insert(2, f"<p>{lead_in} {link}.</p>")
    return "\n".join(paragraphs)


def _published(article: SampleArticle) -> str:
    shown = _time(article, "published", article.published_at)
    if article.updated_at is None:
        return shown
    return f"{shown} · {_time(article, 'updated', article.updated_at)}"


def _time(article: SampleArticle, label: str, instant: datetime) -> str:
    at = local_time(article.outlet, instant)
    said = phrasebook(article.outlet.language).labels[label]
    return f'<time datetime="{at.isoformat()}">{said} {at:%Y-%m-%d %H:%M}</time>'


def _masthead(outlet: Outlet) -> str:
    labels = phrasebook(outlet.language).labels
    return f"""<header class="site"><a class="brand" href="/">{escape(outlet.name)}</a>
<nav><ul><li>{_section_links(outlet, "</li><li>")}</li></ul></nav>
<a href="/login">{labels["login"]}</a> <a href="/search">{labels["search"]}</a></header>"""


def _section_links(outlet: Outlet, between: str = " | ") -> str:
    labels = phrasebook(outlet.language).labels
    return between.join(f'<a href="/{name}">{labels[name]}</a>' for name in SECTIONS)


def _links(related: Sequence[SampleArticle]) -> str:
    items = (
        f'<li><a href="{escape(article.path)}">{escape(article.story.headline)}</a></li>'
        for article in related
    )
    return f"<ul>{''.join(items)}</ul>"


def _footer(outlet: Outlet) -> str:
    labels = phrasebook(outlet.language).labels
    return f"""<footer><a href="/imprint">{labels["imprint"]}</a>
<a href="/privacy">{labels["privacy"]}</a>
<small>© 2025 {escape(outlet.name)}. {labels["rights"]}.</small></footer>
"""
