"""Pure: the sitemaps of the sample sites: plain, gzipped, for news, as text, and an index."""

from collections.abc import Sequence
from html import escape

from news_platform.sample.markup import keywords, local_time
from news_platform.sample.newsroom import Article
from news_platform.sample.outlets import Outlet
from news_platform.sample.resource import Resource, gzip_member

_XML = "application/xml; charset=utf-8"
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_NEWS = "http://www.google.com/schemas/sitemap-news/0.9"


def sitemaps(outlet: Outlet, articles: Sequence[Article]) -> dict[str, Resource]:
    """Return the sitemaps of an outlet by path; what robots.txt names need not be all."""
    plain = Resource(_urlset(articles), content_type=_XML, etag=True)
    news = Resource(_news_urlset(articles), content_type=_XML, gzipped=True)
    packed = Resource(gzip_member(_urlset(articles)), content_type="application/gzip")
    match outlet.key:
        case "meridian":
            return {"/sitemap-news.xml": news}
        case "calderpost" | "kupfertal" | "marsa":
            children = ("/sitemap-2025-11.xml.gz", "/sitemap-news.xml")
            index = Resource(_index(outlet, children), content_type=_XML)
            return {"/sitemap_index.xml": index, children[0]: packed, children[1]: news}
        case "northmoor":
            return {"/sitemap.txt": Resource(_text(articles), content_type="text/plain")}
        case "tidewater":
            return {"/sitemap.xml": plain, "/sitemap-news.xml": news}
        case "zarechye":
            return {"/sitemap.xml.gz": packed}
        case "limani" | "fenwick":
            return {}
        case _:
            return {"/sitemap.xml": plain}


def _urlset(articles: Sequence[Article]) -> bytes:
    urls = "\n".join(
        f"<url><loc>{escape(article.url)}</loc>"
        f"<lastmod>{local_time(article.outlet, article.changed_at).isoformat()}</lastmod></url>"
        for article in articles
    )
    return _xml(f'<urlset xmlns="{_NAMESPACE}">\n{urls}\n</urlset>')


def _news_urlset(articles: Sequence[Article]) -> bytes:
    urls = "\n".join(_news_url(article) for article in articles)
    return _xml(f'<urlset xmlns="{_NAMESPACE}" xmlns:news="{_NEWS}">\n{urls}\n</urlset>')


def _news_url(article: Article) -> str:
    outlet = article.outlet
    published = local_time(outlet, article.published_at).isoformat()
    return f"""<url><loc>{escape(article.url)}</loc><news:news>
<news:publication><news:name>{escape(outlet.name)}</news:name><news:language>{outlet.language}</news:language></news:publication>
<news:publication_date>{published}</news:publication_date>
<news:title>{escape(article.story.headline)}</news:title>
<news:keywords>{escape(", ".join(keywords(article)))}</news:keywords></news:news></url>"""


def _index(outlet: Outlet, children: Sequence[str]) -> bytes:
    entries = "\n".join(
        f"<sitemap><loc>{outlet.origin}{child}</loc></sitemap>" for child in children
    )
    return _xml(f'<sitemapindex xmlns="{_NAMESPACE}">\n{entries}\n</sitemapindex>')


def _text(articles: Sequence[Article]) -> bytes:
    return "".join(f"{article.url}\n" for article in articles).encode()


def _xml(content: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{content}\n'.encode()
