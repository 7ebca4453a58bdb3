"""Segmentation quality has a floor on real pages; it may only rise."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from news_platform.source_records.options import SegmentOptions
from news_platform_tests.source_records.pages import texts

# Every eighth real page, headings as records; the benchmark has the scores of the whole set.
REAL_FLOOR = {"f1": 0.80, "kept": 0.80, "dropped": 0.88}
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def word_f1(found: Iterable[str], wanted: Iterable[str]) -> float:
    ours, theirs = Counter(words(" ".join(found))), Counter(words(" ".join(wanted)))
    hits = (ours & theirs).total()
    return 2 * hits / (ours.total() + theirs.total()) if hits else 0.0


def test_real_pages_stay_above_the_floor(bench_data: Path) -> None:
    folder = bench_data / "pages"
    scores: list[float] = []
    kept: list[bool] = []
    dropped: list[bool] = []
    for path in sorted((folder / "truth").glob("*.json"))[::8]:
        truth = json.loads(path.read_text(encoding="utf-8"))
        html = gzip.decompress((folder / "html" / f"{path.stem}.html.gz").read_bytes())
        found = texts(html, SegmentOptions(headings="records"))
        flat = " ".join(words("\n".join(found)))
        scores.append(word_f1(found, [truth["main_content"] or ""]))
        kept += [" ".join(words(text)) in flat for text in truth["with"] or []]
        dropped += [" ".join(words(text)) not in flat for text in truth["without"] or []]
    assert sum(scores) / len(scores) >= REAL_FLOOR["f1"]
    assert sum(kept) / len(kept) >= REAL_FLOOR["kept"]
    assert sum(dropped) / len(dropped) >= REAL_FLOOR["dropped"]
