"""The responses of every host of the sample world, by URL, and the snapshots of institutions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import TypeAlias

from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.outlets import (
    DATA,
    OUTLET_OF,
    TEXT,
    Outlet,
    SiteResponse,
    read_toml,
    read_tree,
    render,
)
from news_platform.sample.pages import (
    SECTIONS,
    article_page,
    feeds,
    front_page,
    moved_page,
    script_only_page,
    sitemaps,
)

# One key names the kind of the block (`h1`, `p`, `ul`, `table` ...); `lang` is optional.
Block: TypeAlias = Mapping[str, str | tuple[str, ...] | tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, slots=True)
class InstitutionPage:
    """One stored page; `error` states why a failed one has no content."""

    name: str
    path: str
    title: str
    fetched_at: str
    blocks: tuple[Block, ...]
    aside: tuple[Block, ...]
    status_code: int = 200
    markdown_only: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Institution:
    """A fictional university, institute, hospital or college."""

    id: str
    name: str
    host: str
    country: str
    menu: tuple[str, ...]
    pages: tuple[InstitutionPage, ...] = field(repr=False)

    @property
    def origin(self) -> str:
        """Return the URL of the front page without its final slash."""
        return f"https://{self.host}"

    @property
    def domain(self) -> str:
        """Return the domain without the host name and without `.example`."""
        return ".".join(self.host.split(".")[-2:])


@dataclass(frozen=True, slots=True)
class _InstitutionsFile:
    institution: tuple[Institution, ...]


@cache
def institutions() -> tuple[Institution, ...]:
    """Read all institutions."""
    return read_toml("institutions.toml", _InstitutionsFile).institution


def snapshot_files() -> dict[str, bytes]:
    """Return every snapshot by its path under the snapshots folder."""
    return {
        f"institution={institution.id}/{page.name}.json": _snapshot(institution, page)
        for institution in institutions()
        for page in institution.pages
    }


def institution_site(institution: Institution) -> dict[str, SiteResponse]:
    """Return the responses of an institution's own site: robots.txt, a sitemap and its pages."""
    pages = {
        page.path: SiteResponse(_raw_html(institution, page).encode(), status=page.status_code)
        for page in institution.pages
        if not page.error
    }
    urls = "".join(f"<url><loc>{institution.origin}{path}</loc></url>" for path in sorted(pages))
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    sitemap = f'<?xml version="1.0"?>\n<urlset xmlns="{namespace}">{urls}</urlset>\n'.encode()
    rules = f"User-agent: *\nDisallow: /intranet/\n\nSitemap: {institution.origin}/sitemap.xml\n"
    return {
        **pages,
        "/robots.txt": SiteResponse(rules.encode(), content_type=TEXT, etag=True),
        "/sitemap.xml": SiteResponse(sitemap, content_type="application/xml"),
    }


def _raw_html(institution: Institution, page: InstitutionPage) -> str:
    return render("institution.html", institution=institution, page=page)


def _snapshot(institution: Institution, page: InstitutionPage) -> bytes:
    document: dict[str, object] = {"success": False, "error": page.error, "code": "SCRAPE_TIMEOUT"}
    if not page.error:
        data = {**_formats(institution, page), "metadata": _metadata(institution, page)}
        document = {"success": True, "data": data}
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def _formats(institution: Institution, page: InstitutionPage) -> dict[str, object]:
    markdown = render("blocks.md", blocks=page.blocks)
    if page.markdown_only:
        return {"markdown": markdown}
    return {
        "markdown": markdown,
        "html": f"<main>\n{render('blocks.html', blocks=page.blocks)}</main>",
        "rawHtml": _raw_html(institution, page),
        "links": [f"{institution.origin}/{at}" for at, _ in enumerate(institution.menu)],
    }


def _metadata(institution: Institution, page: InstitutionPage) -> dict[str, object]:
    url = institution.origin + page.path
    stated: dict[str, object] = {
        "title": f"{page.title} | {institution.name}",
        "language": "en",
        "sourceURL": url,
        "url": url,
        "statusCode": page.status_code,
        "contentType": "text/html; charset=utf-8",
        "cacheState": "hit",
        "cachedAt": page.fetched_at,
        "creditsUsed": 1,
    }
    return stated if page.status_code < 400 else {**stated, "error": "Not Found"}


Site: TypeAlias = Mapping[str, SiteResponse]

_FRONT_TEASERS = 12
_RELATED = 4


def build_sites(articles: Sequence[SampleArticle]) -> dict[str, Site]:
    """Return the responses of every host by request target (path and query)."""
    sites: dict[str, Site] = {}
    for key, group in groupby(articles, key=lambda article: article.outlet.key):
        outlet = OUTLET_OF[key]
        site = sites[outlet.host] = _outlet_site(outlet, list(group))
        for alias in outlet.aliases:
            sites[alias] = _alias_site(outlet, alias, site["/robots.txt"])
    for institution in institutions():
        sites[institution.host] = institution_site(institution)
        moved = _moved(f"{institution.origin}/robots.txt")
        sites.setdefault(institution.domain, {"/robots.txt": moved})
    return sites


def page_of(article: SampleArticle, articles: Sequence[SampleArticle]) -> SiteResponse:
    """Return the page of an article; `articles` are those of its outlet."""
    others = [other for other in articles if other.story.topic == article.story.topic]
    at = others.index(article) if article in others else 0
    related = [other for other in others[at + 1 :] + others[:at] if other.kind == "own"]
    return _page(article.outlet, article_page(article, related[:_RELATED]), at=article.changed_at)


def _outlet_site(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    logo = DATA.joinpath("logo.png").read_bytes()
    return {
        **{article.path: page_of(article, articles) for article in articles},
        **_fronts(outlet, articles),
        **_short_links(outlet, articles),
        **_withdrawn(outlet, articles),
        **sitemaps(outlet, articles),
        **feeds(outlet, articles),
        **_stored_files(outlet),
        **{path: _with_body(response) for path, response in outlet.responses.items()},
        "/logo.png": SiteResponse(logo, content_type="image/png", etag=True),
    }


def _alias_site(outlet: Outlet, alias: str, robots: SiteResponse) -> Site:
    """Return the responses of a bare domain: most redirect, two have their own robots.txt."""
    if alias == "co.example":  # a public suffix, which answers nothing
        return {"/robots.txt": SiteResponse(content_type=TEXT, status=404)}
    paths = ("/", "/sitemap.xml", outlet.feed.path, "/robots.txt")
    site = {path: _moved(outlet.origin + path) for path in paths}
    return site | ({"/robots.txt": robots} if outlet.robots_on_aliases else {})


def _fronts(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    newest = list(reversed(articles))
    fronts = {"/": _page(outlet, front_page(outlet, newest[:_FRONT_TEASERS]))}
    for section in SECTIONS:
        told = [article for article in newest if article.story.topic == section]
        page = front_page(outlet, told[:_FRONT_TEASERS], section=section)
        fronts[f"/{section}"] = _page(outlet, page)
    fronts["/app"] = _page(outlet, script_only_page(outlet))
    return fronts


def _short_links(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    """Return the redirects of short links, or of the URLs before the last redesign."""
    links = outlet.short_links
    if links is None:
        return {}
    return {
        f"{links.path}{article.number}": _moved(
            article.path if links.is_relative else article.url, links.status
        )
        for article in articles
    }


def _withdrawn(outlet: Outlet, articles: list[SampleArticle]) -> Site:
    if outlet.withdrawn is None:
        return {}
    gone = SiteResponse(b"Gone\n", content_type=TEXT, status=410)
    return {articles[-outlet.withdrawn].path: gone}


def _stored_files(outlet: Outlet) -> Site:
    """Return robots.txt and the other files in which the outlet states how it may be used."""
    types = {"txt": TEXT, "json": "application/json"}
    return {
        f"/{path}": SiteResponse(body, content_type=types[path.rpartition(".")[2]], etag=True)
        for path, body in read_tree(DATA.joinpath("sites", outlet.host)).items()
    }


def _with_body(response: SiteResponse) -> SiteResponse:
    if response.location and not response.body:
        return replace(response, body=moved_page(response.location))
    return response


def _page(outlet: Outlet, body: bytes, *, at: datetime | None = None) -> SiteResponse:
    declared = f"; charset={outlet.charset}" if outlet.charset_in_header else ""
    return SiteResponse(body, content_type=f"text/html{declared}", modified_at=at, gzipped=True)


def _moved(location: str, status: int = 301) -> SiteResponse:
    return SiteResponse(moved_page(location), status=status, location=location)
