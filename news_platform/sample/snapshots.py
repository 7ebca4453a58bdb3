"""Pure: pages of institutions as a browser saw them, and as Firecrawl v2 JSON stores them."""

import json
from html import escape

from news_platform.sample.blocks import render_html, render_markdown
from news_platform.sample.institutions import Institution, InstitutionPage, institutions
from news_platform.sample.resource import Resource

_TEXT = "text/plain; charset=utf-8"
_COOKIES = "This site uses cookies. By using it you agree to our cookie policy."


def snapshot_files() -> dict[str, bytes]:
    """Return every stored snapshot by its path under the snapshots folder."""
    return {
        f"institution={institution.id}/{page.name}.json": _document(institution, page)
        for institution in institutions()
        for page in institution.pages
    }


def institution_site(institution: Institution) -> dict[str, Resource]:
    """Return what an institution's own site answers: rules, a sitemap and its pages."""
    pages = {page.path: _live(institution, page) for page in institution.pages if not page.error}
    urls = "".join(f"<url><loc>{institution.origin}{path}</loc></url>" for path in sorted(pages))
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    sitemap = f'<?xml version="1.0"?>\n<urlset xmlns="{namespace}">{urls}</urlset>\n'.encode()
    rules = f"User-agent: *\nDisallow: /intranet/\n\nSitemap: {institution.origin}/sitemap.xml\n"
    return {
        **pages,
        "/robots.txt": Resource(rules.encode(), content_type=_TEXT, etag=True),
        "/sitemap.xml": Resource(sitemap, content_type="application/xml"),
    }


def _live(institution: Institution, page: InstitutionPage) -> Resource:
    return Resource(_raw_html(institution, page).encode(), status=page.status_code)


def _document(institution: Institution, page: InstitutionPage) -> bytes:
    answer = _failure(page) if page.error else _success(institution, page)
    return json.dumps(answer, ensure_ascii=False, indent=1).encode() + b"\n"


def _failure(page: InstitutionPage) -> dict[str, object]:
    return {"success": False, "error": page.error, "code": "SCRAPE_TIMEOUT"}


def _success(institution: Institution, page: InstitutionPage) -> dict[str, object]:
    formats: dict[str, object] = {"markdown": render_markdown(page.blocks)}
    if not page.markdown_only:
        formats["html"] = f"<main>\n{render_html(page.blocks)}\n</main>"
        formats["rawHtml"] = _raw_html(institution, page)
        formats["links"] = [f"{institution.origin}/{at}" for at, _ in enumerate(institution.menu)]
    return {"success": True, "data": {**formats, "metadata": _metadata(institution, page)}}


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


def _raw_html(institution: Institution, page: InstitutionPage) -> str:
    menu = "".join(
        f'<li><a href="/{at}">{escape(item)}</a></li>' for at, item in enumerate(institution.menu)
    )
    aside = f'<aside class="sidebar">\n{render_html(page.aside)}\n</aside>' if page.aside else ""
    crumbs = f'<a href="/">Home</a> › <a href="..">Up</a> › {escape(page.title)}'
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(page.title)} | {escape(institution.name)}</title></head>
<body>
<div id="cookie-consent" role="dialog"><p>{_COOKIES}</p><button>Accept</button></div>
<header><a href="/">{escape(institution.name)}</a>
<form role="search"><input name="q"></form></header>
<nav aria-label="Main"><ul>{menu}</ul></nav>
<div class="breadcrumbs">{crumbs}</div>
<main id="content">
{render_html(page.blocks)}
</main>
{aside}
<div class="share"><a href="#s">Share</a> <a href="#p">Print</a> <a href="/login">Log in</a></div>
<footer><p>© 2025 {escape(institution.name)}</p>
<a href="/privacy">Privacy</a> <a href="/a11y">Accessibility</a></footer>
</body>
</html>
"""
