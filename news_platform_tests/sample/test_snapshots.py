"""Snapshots of institutions look like Firecrawl v2 answers, clutter and failures included."""

import json
from typing import Any

import pytest

from news_platform.sample.outlets import render
from news_platform.sample.sites import institution_site, institutions, snapshot_files


def snapshot(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(snapshot_files()[f"institution={name}.json"])
    return document


def test_a_good_snapshot_has_all_formats_and_its_metadata() -> None:
    document = snapshot("northmoor-university/departments")
    data = document["data"]
    assert document["success"] is True
    assert set(data) == {"markdown", "html", "rawHtml", "links", "metadata"}
    assert data["metadata"]["statusCode"] == 200
    assert data["metadata"]["cachedAt"] == "2025-11-02T08:15:00Z"
    assert data["metadata"]["sourceURL"].startswith("https://www.northmoor-university.example/")


def test_the_departments_page_holds_what_segmentation_must_sort_out() -> None:
    raw = snapshot("northmoor-university/departments")["data"]["rawHtml"]
    for clutter in ("<nav", "<footer", "cookie-consent", "breadcrumbs", "<aside", "Apply now"):
        assert clutter in raw
    assert raw.count("Electrical &amp; Computer Engineering") == 2
    assert "Facultad de Ingeniería – Admisiones" in raw


def test_the_stripped_html_has_content_only() -> None:
    stripped = snapshot("northmoor-university/departments")["data"]["html"]
    assert "Naval Architecture" in stripped
    assert "<nav" not in stripped
    assert "<footer" not in stripped


def test_one_snapshot_is_a_failure_without_data() -> None:
    failed = [json.loads(body) for body in snapshot_files().values()]
    failed = [document for document in failed if not document["success"]]
    assert len(failed) == 1
    assert "data" not in failed[0]
    assert "30000 ms" in failed[0]["error"]


def test_one_snapshot_is_markdown_only_and_one_a_missing_page() -> None:
    assert set(snapshot("northmoor-university/programmes")["data"]) == {"markdown", "metadata"}
    gone = snapshot("calder-institute/old-staff")["data"]["metadata"]
    assert (gone["statusCode"], gone["error"]) == (404, "Not Found")


def test_an_institutions_own_site_answers_with_rules_sitemap_and_pages() -> None:
    college = institutions()[0]
    site = institution_site(college)
    assert b"Sitemap: https://www.northmoor-university.example/sitemap.xml" in (
        site["/robots.txt"].body
    )
    assert site["/engineering/departments"].status == 200
    assert b"/engineering/departments</loc>" in site["/sitemap.xml"].body


CASES = {
    "heading": ({"h2": "A & B"}, "<h2>A &amp; B</h2>", "## A & B\n"),
    "paragraph": ({"p": "Hola", "lang": "es"}, '<p lang="es">Hola</p>', "Hola\n"),
    "list": ({"ul": ["a", "b"]}, "<ul><li>a</li><li>b</li></ul>", "- a\n- b\n"),
    "numbered": ({"ol": ["a", "b"]}, "<ol><li>a</li><li>b</li></ol>", "1. a\n2. b\n"),
    "quote": ({"quote": "q"}, "<blockquote>q</blockquote>", "> q\n"),
    "terms": ({"dl": [["t", "d"]]}, "<dl><dt>t</dt><dd>d</dd></dl>", "**t**\nd\n"),
    "table": (
        {"table": [["H", "I"], ["1", "2"]]},
        "<table><thead><tr><th>H</th><th>I</th></tr></thead>"
        "<tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
        "| H | I |\n| --- | --- |\n| 1 | 2 |\n",
    ),
}


@pytest.mark.parametrize(("entry", "as_html", "as_markdown"), CASES.values(), ids=CASES)
def test_a_block_is_rendered_both_ways(
    entry: dict[str, object], as_html: str, as_markdown: str
) -> None:
    assert render("blocks.html", blocks=[entry]) == f"{as_html}\n"
    assert render("blocks.md", blocks=[entry]) == as_markdown
