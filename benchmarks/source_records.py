"""Benchmark page segmentation on real pages: word F1, snippets kept and dropped, speed."""

import gzip
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from lxml import etree
from resiliparse.extract.html2text import extract_plain_text

import news_platform.source_records.worker  # noqa: F401 - makes this process what a worker is
from news_platform.html.decode import decode_html
from news_platform.settings import load_settings
from news_platform.source_records.html_events import parse_html
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import segment_page

RESULTS = Path(__file__).parent / "results" / "source_records.json"
_WORD = re.compile(r"\w+")
_ROUNDS = 5

Segmenter = Callable[[bytes], Sequence[str]]


@dataclass(frozen=True, slots=True)
class RealPage:
    """A page with its main content, and snippets that must and must not be kept."""

    name: str
    kind: str
    html: bytes
    content: str
    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """The mean word F1 of some pages, and the shares of snippets kept and dropped."""

    pages: int
    f1: float
    kept: float
    dropped: float


def read_pages(folder: Path) -> list[RealPage]:
    """Read the labelled pages."""
    return [_page(folder, path) for path in sorted((folder / "truth").glob("*.json"))]


def _page(folder: Path, path: Path) -> RealPage:
    truth = json.loads(path.read_text(encoding="utf-8"))
    html = gzip.decompress((folder / "html" / f"{path.stem}.html.gz").read_bytes())
    return RealPage(
        path.stem,
        truth["page_type"],
        html,
        truth["main_content"] or "",
        tuple(truth["with"] or ()),
        tuple(truth["without"] or ()),
    )


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def score(pages: Sequence[RealPage], found: Mapping[str, Sequence[str]]) -> Score:
    """Compare what was found on each page with its labels."""
    flat = {page.name: " ".join(words("\n".join(found[page.name]))) for page in pages}
    kept = [_is_in(text, flat[page.name]) for page in pages for text in page.wanted]
    dropped = [not _is_in(text, flat[page.name]) for page in pages for text in page.unwanted]
    scores = [_f1(flat[page.name], page.content) for page in pages]
    return Score(len(pages), _mean(scores), _mean(kept), _mean(dropped))


def _is_in(snippet: str, flat: str) -> bool:
    return " ".join(words(snippet)) in flat


def _f1(found: str, content: str) -> float:
    ours, theirs = Counter(found.split()), Counter(words(content))
    hits = (ours & theirs).total()
    return 2 * hits / (ours.total() + theirs.total()) if hits else 0.0


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def ours(options: SegmentOptions) -> Segmenter:
    """Return our segmenter with these options."""

    def segment(html: bytes) -> list[str]:
        records = segment_page(html, url="https://bench.example/", institution="x", options=options)
        return [record.text for record in records]

    return segment


def with_sections(html: bytes) -> list[str]:
    """Return the default records, with each new heading of their sections before them."""
    found: list[str] = []
    above: list[str] = []
    for record in segment_page(html, url="https://bench.example/", institution="x"):
        path = (record.provenance.section or "").split(" > ")
        same = next((n for n, (a, b) in enumerate(zip(above, path, strict=False)) if a != b), None)
        fresh = path[min(len(above), len(path)) if same is None else same :]
        found += [*fresh, record.text] if record.meta.kind != "heading" else [record.text]
        above = path
    return found


def resiliparse(html: bytes) -> list[str]:
    """Return the main content found by resiliparse."""
    return [extract_plain_text(decode_html(html).text, main_content=True, alt_texts=False)]


def bare_tree(html: bytes) -> list[str]:
    """Only decode and build a tree: the minimum cost of any walk over a tree."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True)
    etree.fromstring(decode_html(html).utf8, parser)
    return []


def bare_events(html: bytes) -> list[str]:
    """Only decode and parse into events, as our segmentation does."""
    parse_html(decode_html(html).utf8)
    return []


SEGMENTERS: Mapping[str, Segmenter] = {
    "ours, headings as records": ours(SegmentOptions(headings="records")),
    "ours, headings from sections": with_sections,
    "ours, text alone": ours(SegmentOptions()),
    "resiliparse main content": resiliparse,
    "lxml tree alone": bare_tree,
    "events alone": bare_events,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a segmenter found on each page, and its pages per second.

    `all_rounds` is the rate over all rounds; `quickest` counts each page's quickest round: on a
    machine that others use too, the rest is their noise.
    """

    found: Mapping[str, Sequence[str]]
    all_rounds: float
    quickest: float


def measure(pages: Sequence[RealPage]) -> dict[str, Measured]:
    """Run every segmenter on every page, page by page, and time each call."""
    found: dict[str, dict[str, Sequence[str]]] = {name: {} for name in SEGMENTERS}
    seconds: dict[str, dict[str, list[float]]] = {
        name: {page.name: [] for page in pages} for name in SEGMENTERS
    }
    for _ in range(_ROUNDS):
        for page in pages:
            for name, segment in SEGMENTERS.items():
                started = time.process_time()
                found[name][page.name] = segment(page.html)
                seconds[name][page.name].append(time.process_time() - started)
    return {name: _measured(found[name], seconds[name]) for name in SEGMENTERS}


def _measured(
    found: Mapping[str, Sequence[str]], seconds: Mapping[str, Sequence[float]]
) -> Measured:
    return Measured(
        found,
        all_rounds=len(seconds) * _ROUNDS / sum(map(sum, seconds.values())),
        quickest=len(seconds) / sum(map(min, seconds.values())),
    )


def main() -> None:
    """Print one table and store its numbers."""
    bench_data = load_settings(os.environ).bench_data
    if bench_data is None:
        print("source_records: skipped, NEWS_PLATFORM_BENCH_DATA is not set")
        return
    pages = read_pages(Path(bench_data) / "pages")
    measured = measure(pages)
    rows = [_row(name, pages, done.found) | _rates(done) for name, done in measured.items()]
    best = measured["ours, headings as records"].found
    halves = {"even pages, tuned on": pages[::2], "odd pages, held out": pages[1::2]}
    kinds = {kind: [p for p in pages if p.kind == kind] for kind in sorted({p.kind for p in pages})}
    parts = [_row(name, part, best) for name, part in {**halves, **kinds}.items()]
    with pl.Config(tbl_rows=-1, fmt_str_lengths=40):
        print(pl.DataFrame([*rows, *parts]))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"segmenters": rows, "parts": parts}, indent=1) + "\n")


def _row(
    name: str, pages: Sequence[RealPage], found: Mapping[str, Sequence[str]]
) -> dict[str, object]:
    return {"what": name, **asdict(score(pages, found))}


def _rates(done: Measured) -> dict[str, object]:
    return {
        "pages_per_second": round(done.quickest, 1),
        "pages_per_second_all_rounds": round(done.all_rounds, 1),
    }


if __name__ == "__main__":
    main()
