"""Hostile pages: each ends in records or in an error, within five seconds."""

import time

import pytest

from news_platform.source_records.segment import segment_page

SPANISH = "<p>Algunas palabras de un párrafo aquí y más cosas que decir de todo esto {}.</p>"

PAGES: dict[str, str | bytes] = {
    "nested elements": "<div>" * 20_000 + "deep text of a page" + "</div>" * 20_000,
    "nested lists": "<ul><li>" * 20_000 + "deep text of a page",
    "nested inline": "<b>" * 20_000 + "deep text of a page",
    "50 MB of text": "<p>" + "word " * 10_000_000,
    "50 MB of markup": "<p>x</p>" * 6_250_000,
    "broken markup": "<div><p>text of a page<table><li></div></p><td>cell of a table<b><i></div",
    "only angle brackets": "<" * 1_000_000,
    "unclosed tag": "<p>text of a page here<a href='" + "x" * 1_000_000,
    "wrong charset": b"<meta charset=utf-8><p>" + "The Café of the Faculty".encode("latin-1"),
    "not text at all": bytes(range(256)) * 4_000,
    "empty": "",
    "empty body": "<html><body></body></html>",
    "attributes": "<p " + " ".join(f"a{number}=1" for number in range(100_000)) + ">text</p>",
    "ends of nothing": "<b>" * 2_000 + "text of a page here" + "</i>" * 50_000,
    "nested tables": "<table><tr>" * 1_000 + "<td>cell of a table" * 5_000,
    "line breaks": "<p>" + "line of a page<br>" * 50_000,
    "foreign blocks": "".join(SPANISH.format(number) for number in range(10_000)),
    "markdown stars": "*a " * 1_000_000,
    "markdown images": "![](" * 900_000,
    "markdown rule": "-" * 100_000 + "x",
    "markdown lines": "- item of a list\n" * 49_000,
    "table cells": "<table>" + "<tr><td>cell</td><td>cell</td></tr>" * 9_000,
}


UNREADABLE = {"nested elements", "50 MB of text", "50 MB of markup", "empty", "empty body"}


@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_page_ends_in_records_or_an_error_within_five_seconds(name: str) -> None:
    # Processor time: other tests run beside this one.
    started = time.process_time()
    records = segment_page(PAGES[name], url="https://u1.edu/", institution="u1")
    assert time.process_time() - started < 5
    failed = [record for record in records if record.meta.error]
    assert [(record.text, record.provenance.url) for record in failed] in (
        [],
        [("", "https://u1.edu/")],
    )
    assert not failed or len(records) == 1
    assert failed or name not in UNREADABLE


def test_broken_markup_and_a_wrong_charset_still_give_text() -> None:
    broken = segment_page(PAGES["broken markup"], url="u", institution="u1")
    assert "text of a page" in " ".join(record.text for record in broken)
    (record,) = segment_page(PAGES["wrong charset"], url="u", institution="u1")
    assert record.text == "The Café of the Faculty"
    assert record.meta.charset != "utf-8"
