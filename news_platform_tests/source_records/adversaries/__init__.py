"""Sixty institutional pages, written as real ones look, with exactly the records they must give.

`expected.json` has for every page the target language and its records as [section, text].
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import SegmentedPage, segment
from news_platform.source_records.snapshots import SourcePage

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Adversary:
    """A page, its target language, and the section and text of every record it must give."""

    name: str
    language: str
    content: bytes
    records: Sequence[tuple[str | None, str]]

    def segment(self) -> SegmentedPage:
        """Segment the page."""
        page = SourcePage(self.content, url=f"https://u1.edu/{self.name}", institution="u1")
        return segment(page, SegmentOptions(language=self.language))

    def found(self) -> list[tuple[str | None, str]]:
        """Return the section and text of every record that the page gives."""
        done = self.segment()
        records = () if done.error else done.records
        return [(record.provenance.section, record.text) for record in records]


def read_adversaries() -> list[Adversary]:
    """Read the pages and what they must give."""
    expected: Mapping[str, Mapping[str, object]] = json.loads(
        (_FOLDER / "expected.json").read_text(encoding="utf-8")
    )
    return [_adversary(name, given) for name, given in expected.items()]


def _adversary(name: str, given: Mapping[str, object]) -> Adversary:
    rows = given["records"]
    assert isinstance(rows, list)
    records = [(section, text) for section, text in rows]
    return Adversary(name, str(given["language"]), (_FOLDER / name).read_bytes(), records)
