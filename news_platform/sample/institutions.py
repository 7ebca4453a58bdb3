"""Institutions of the sample world, their pages, and these pages as stored snapshots."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from news_platform.sample.package_data import read_toml, render
from news_platform.sample.responses import TEXT, SiteResponse

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
