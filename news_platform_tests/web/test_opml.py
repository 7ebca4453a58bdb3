"""What a tolerant XML parser had to repair is counted, and its first place named."""

from pathlib import Path

import pytest

from news_platform.web.opml import xml_damage


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        (b"", 1, "Document is empty"),
        (b"<a>\n<b>\n</a>", 3, "mismatch: b line 2 and a"),
        (b"<a>\nR & B</a>", 2, "EntityRef"),
        (b"<a>\xed\xa0\x80</a>", 1, "Invalid bytes"),
    ],
)
def test_damage_is_named_by_its_place(body: bytes, line: int, message: str) -> None:
    damage = xml_damage(body)
    assert damage is not None and damage.errors >= 1
    assert damage.line == line and message in damage.message
    assert "\n" not in str(damage) and f"at line {line}, column {damage.column}" in str(damage)


def test_a_whole_document_has_no_damage() -> None:
    assert xml_damage(b'<?xml version="1.0"?>\n<a><b x="1 &amp; 2"/></a>\n') is None


def test_every_truncation_of_a_real_file_is_damage(bench_data: Path) -> None:
    for path in sorted((bench_data / "feeds" / "_opml").glob("*.opml")):
        body = path.read_bytes().strip()
        assert xml_damage(body) is None
        cuts = range(1, len(body), max(1, len(body) // 200))
        assert [cut for cut in cuts if xml_damage(body[:cut]) is None] == []
