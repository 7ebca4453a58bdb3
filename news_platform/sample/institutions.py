"""Institutions of the sample world, their pages, and these pages as stored snapshots."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from news_platform.sample.responses import SiteResponse


@dataclass(frozen=True, slots=True)
class SnapshotBlock:
    """One block: a text is one row with one cell, a list a row per item, a table a header first."""

    kind: str
    rows: tuple[tuple[str, ...], ...]
    language: str | None = None

    @property
    def text(self) -> str:
        """Return the first cell, which is the whole text of a heading, paragraph or quote."""
        return self.rows[0][0]


def parse_block(entry: Mapping[str, object]) -> SnapshotBlock:
    """Parse a block from TOML: one key names its kind, and `lang` is optional."""
    language = entry.get("lang")
    (kind, content) = next((key, value) for key, value in entry.items() if key != "lang")
    parts = content if isinstance(content, list) else [content]
    rows = tuple(
        tuple(map(str, part)) if isinstance(part, list) else (str(part),) for part in parts
    )
    return SnapshotBlock(kind, rows, None if language is None else str(language))


def render_html(blocks: Sequence[SnapshotBlock]) -> str:
    """Return the blocks as HTML, one per line."""
    return "\n".join(_html(block) for block in blocks)


def render_markdown(blocks: Sequence[SnapshotBlock]) -> str:
    """Return the blocks as markdown, separated by blank lines."""
    return "\n\n".join(_MARKDOWN[block.kind](block) for block in blocks) + "\n"


def _html(block: SnapshotBlock) -> str:
    lang = f' lang="{block.language}"' if block.language else ""
    tag = "blockquote" if block.kind == "quote" else block.kind
    return f"<{tag}{lang}>{_html_content(block)}</{tag}>"


def _html_content(block: SnapshotBlock) -> str:
    match block.kind:
        case "ul" | "ol":
            return "".join(f"<li>{escape(row[0])}</li>" for row in block.rows)
        case "dl":
            return "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in block.rows)
        case "table":
            header, *body = block.rows
            return f"<thead>{_row(header, 'th')}</thead><tbody>{_body(body)}</tbody>"
        case _:
            return escape(block.text)


def _body(rows: Sequence[Sequence[str]]) -> str:
    return "".join(_row(row, "td") for row in rows)


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _markdown_table(block: SnapshotBlock) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in block.rows]
    lines.insert(1, "|" + " --- |" * len(block.rows[0]))
    return "\n".join(lines)


_MARKDOWN: dict[str, Callable[[SnapshotBlock], str]] = {
    "h1": lambda block: f"# {block.text}",
    "h2": lambda block: f"## {block.text}",
    "h3": lambda block: f"### {block.text}",
    "p": lambda block: block.text,
    "quote": lambda block: f"> {block.text}",
    "ul": lambda block: "\n".join(f"- {row[0]}" for row in block.rows),
    "ol": lambda block: "\n".join(f"{at}. {row[0]}" for at, row in enumerate(block.rows, 1)),
    "dl": lambda block: "\n\n".join(f"**{term}**\n{said}" for term, said in block.rows),
    "table": _markdown_table,
}


@dataclass(frozen=True, slots=True)
class InstitutionPage:
    """One stored page; `error` states why a failed one has no content."""

    name: str
    path: str
    title: str
    fetched_at: str
    blocks: tuple[SnapshotBlock, ...]
    aside: tuple[SnapshotBlock, ...]
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


@cache
def institutions() -> tuple[Institution, ...]:
    """Read all institutions."""
    source = files("news_platform.sample").joinpath("texts", "institutions.toml")
    document = tomllib.loads(source.read_text(encoding="utf-8"))
    return tuple(_institution(entry) for entry in document["institution"])


def _institution(entry: Mapping[str, Any]) -> Institution:
    return Institution(
        id=entry["id"],
        name=entry["name"],
        host=entry["host"],
        country=entry["country"],
        menu=tuple(entry["menu"]),
        pages=tuple(_page(page) for page in entry["page"]),
    )


def _page(entry: Mapping[str, Any]) -> InstitutionPage:
    plain = {key: value for key, value in entry.items() if key not in ("blocks", "aside")}
    return InstitutionPage(
        **plain,
        blocks=tuple(map(parse_block, entry["blocks"])),
        aside=tuple(map(parse_block, entry["aside"])),
    )


_TEXT = "text/plain; charset=utf-8"
_COOKIES = "This site uses cookies. By using it you agree to our cookie policy."


def snapshot_files() -> dict[str, bytes]:
    """Return every snapshot by its path under the snapshots folder."""
    return {
        f"institution={institution.id}/{page.name}.json": _document(institution, page)
        for institution in institutions()
        for page in institution.pages
    }


def institution_site(institution: Institution) -> dict[str, SiteResponse]:
    """Return the responses of an institution's own site: robots.txt, a sitemap and its pages."""
    pages = {page.path: _live(institution, page) for page in institution.pages if not page.error}
    urls = "".join(f"<url><loc>{institution.origin}{path}</loc></url>" for path in sorted(pages))
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    sitemap = f'<?xml version="1.0"?>\n<urlset xmlns="{namespace}">{urls}</urlset>\n'.encode()
    rules = f"User-agent: *\nDisallow: /intranet/\n\nSitemap: {institution.origin}/sitemap.xml\n"
    return {
        **pages,
        "/robots.txt": SiteResponse(rules.encode(), content_type=_TEXT, etag=True),
        "/sitemap.xml": SiteResponse(sitemap, content_type="application/xml"),
    }


def _live(institution: Institution, page: InstitutionPage) -> SiteResponse:
    return SiteResponse(_raw_html(institution, page).encode(), status=page.status_code)


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
