"""The HTML of a news page in, its article out: text, title, authors, date, section, tags, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from news_platform.articles.body import ArticleBody, extract_body
from news_platform.articles.metadata import parse_article_metadata
from news_platform.html.decode import html_text
from news_platform.html.document import parse_document
from news_platform.html.links import absolute_link
from news_platform.isolation.worker import report
from news_platform.text.language import detect

# A shorter text is not an article, or the article was not found.
_FEW_CHARACTERS = 250
# From this probability on, the detected language is right for 99.8 % of texts.
_SURE = 0.8
_TYPE_BY_KIND = {
    "OpinionNewsArticle": "opinion",
    "LiveBlogPosting": "live",
    "ReviewNewsArticle": "review",
    "Review": "review",
    "BlogPosting": "blog",
    "AnalysisNewsArticle": "analysis",
    "BackgroundNewsArticle": "analysis",
    "AdvertiserContentArticle": "sponsored",
}
_TYPE_BY_WORD = {
    "opinion": frozenset(
        ("opinion", "opinions", "editorial", "commentisfree", "kommentar", "meinung")
    ),
    "live": frozenset(("live", "liveblog", "ticker")),
    "video": frozenset(("video", "videos", "watch")),
    "review": frozenset(("review", "reviews")),
    "blog": frozenset(("blog", "blogs")),
}


@dataclass(frozen=True, slots=True)
class Article:
    """One article; a value that the page does not state is empty.

    `clean_text` is the uncut body, `full_text` all visible text of the main column. `published_at`
    is the date that the page states, in UTC. `out_links` are absolute, unique, to other hosts only.
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


def extract_article(html: str | bytes, url: str, charset: str | None = None) -> Article:
    """Return the article of a page; a page without markup gives an empty Article.

    `charset` is the charset of the HTTP header; it is used for bytes only.
    """
    text = html_text(html, charset)
    root = parse_document(text)
    if root is None:
        return Article()
    stated = parse_article_metadata(root, url=url)
    body = extract_body(root, description=stated.description)
    clean = clean_text_of(text, body.clean)
    return Article(
        clean_text=clean,
        full_text=body.full or clean,
        title=stated.title,
        subtitle=stated.subtitle,
        authors=stated.authors,
        published_at=stated.published_at,
        section=stated.section,
        tags=stated.tags,
        language=_language(clean or body.full, declared=stated.declared_language),
        out_links=tuple(dict.fromkeys(_out_links(body, url=url))),
        article_type=article_type(stated.kind, url=url),
    )


def clean_text_of(html: str, found: str) -> str:
    """Return the text we found, or trafilatura's if ours is short and theirs twice as long.

    Pages rendered by a script have their text in JSON-LD or `<noscript>`, and some mark every
    paragraph as a heading. Trafilatura handles these. It runs only for such pages because it takes
    three times as long as our own rules.
    """
    if len(found) >= _FEW_CHARACTERS:
        return found
    # The import takes a second, and most workers never need it.
    from trafilatura import extract

    theirs = extract(html, include_comments=False) or ""
    return theirs if len(theirs) > max(2 * len(found), _FEW_CHARACTERS) else found


def extract_page(page: tuple[bytes, str, str | None]) -> Article:
    """Extract the article of (body, URL, charset of the HTTP header or None) in a worker."""
    # The first call loads the language model, which must not count against this page's deadline.
    detect("ready")
    report("ready")
    return extract_article(*page)


def article_type(kind: str, *, url: str) -> str:
    """Return news, opinion, live, review, video, blog, analysis or sponsored.

    The stated schema.org type decides, otherwise the words in the URL's path.
    """
    stated = _TYPE_BY_KIND.get(kind)
    if stated:
        return stated
    words = frozenset(re.split(r"[^a-z]+", urlsplit(url).path.lower()))
    return next((name for name, signs in _TYPE_BY_WORD.items() if words & signs), "news")


def _language(text: str, *, declared: str) -> str:
    """Return the detected language if it is certain, else the language that the page declares."""
    found = detect(text)
    sure = found.probability >= _SURE
    return found.code if sure or not declared else declared


def _out_links(body: ArticleBody, *, url: str) -> Iterator[str]:
    own = urlsplit(url).hostname
    for target in body.links:
        link = absolute_link(url, target)
        if link is not None and urlsplit(link).hostname != own:
            yield link
