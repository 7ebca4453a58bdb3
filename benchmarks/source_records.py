"""Benchmark page segmentation on real pages: word F1, snippets kept and dropped, speed."""

import gzip
import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
from lxml import etree
from resiliparse.extract.html2text import extract_plain_text

import news_platform.source_records.worker  # noqa: F401 - makes this process what a worker is
from benchmarks import RESULTS_FOLDER
from news_platform.html.decode import decode_html
from news_platform.settings import load_settings
from news_platform.source_records.blocks import iter_kept
from news_platform.source_records.decisions import decide_blocks
from news_platform.source_records.html_events import Event, parse_html
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import segment_page
from news_platform.source_records.walk import walk
from news_platform.web.urls import registrable_domain
from news_platform_tests.source_records.adversaries import read_adversaries

_SCORED = "ours, headings from sections"
RESULTS = RESULTS_FOLDER / "source_records.json"
_WORD = re.compile(r"\w+")
_ROUNDS = 3

Segmenter = Callable[[bytes], Sequence[str]]


@dataclass(frozen=True, slots=True)
class RealPage:
    """A page with its main content, and snippets that must and must not be kept."""

    name: str
    kind: str
    site: str
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
        _site(truth["url"], path.stem),
        html,
        truth["main_content"] or "",
        tuple(truth["with"] or ()),
        tuple(truth["without"] or ()),
    )


def _site(url: str, name: str) -> str:
    host = urlsplit(url).hostname
    return (host and registrable_domain(host)) or host or name


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class PageScore:
    """The word F1 of one page, and for each of its snippets whether it is as it must be."""

    f1: float
    kept: tuple[bool, ...]
    dropped: tuple[bool, ...]


def score(pages: Sequence[RealPage], found: Mapping[str, Sequence[str]]) -> Score:
    """Compare what was found on each page with its labels."""
    return mean_score([score_page(page, found[page.name]) for page in pages])


def score_page(page: RealPage, found: Sequence[str]) -> PageScore:
    """Compare what was found on one page with its labels."""
    flat = " ".join(words("\n".join(found)))
    return PageScore(
        _f1(flat, page.content),
        tuple(_is_in(text, flat) for text in page.wanted),
        tuple(not _is_in(text, flat) for text in page.unwanted),
    )


def mean_score(scores: Sequence[PageScore]) -> Score:
    """Return the mean F1 of some pages and the shares of all their snippets."""
    return Score(
        len(scores),
        _mean([found.f1 for found in scores]),
        _mean([is_kept for found in scores for is_kept in found.kept]),
        _mean([is_dropped for found in scores for is_dropped in found.dropped]),
    )


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


def with_sections(html: bytes, options: SegmentOptions | None = None) -> list[str]:
    """Return the records, with each new heading of their sections before them."""
    records = segment_page(html, url="https://bench.example/", institution="x", options=options)
    return _with_headings(
        (record.provenance.section, record.text, record.meta.kind) for record in records
    )


def _with_headings(records: Iterable[tuple[str | None, str, str | None]]) -> list[str]:
    found: list[str] = []
    above: list[str] = []
    for section, text, kind in records:
        path = (section or "").split(" > ")
        same = next((n for n, (a, b) in enumerate(zip(above, path, strict=False)) if a != b), None)
        fresh = path[min(len(above), len(path)) if same is None else same :]
        found += [*fresh, text] if kind != "heading" else [text]
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


# Thresholds among which each fold chooses, each changed alone from the defaults.
CHOICES: Mapping[str, Sequence[float]] = {
    "zone_share": (0.5, 0.9),
    "widget_share": (0.2, 0.6),
    "main_share": (0.2, 0.6),
    "lead_chars": (0, 120, 300),
    "lead_blocks": (10, 60),
    "link_density": (0.6,),
    "link_words": (1, 3),
    "link_run": (2, 5),
    "call_words": (5, 6, 8),
    "notice_chars": (150, 350),
}
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Fold:
    """The scores of a fold's own pages and of all others, with the rules chosen on the others."""

    chosen: str
    held_out: Score
    tuned: Score


def candidates() -> dict[str, SegmentOptions]:
    """Return the default options, and the options with one threshold changed."""
    default = SegmentOptions()
    found = {"defaults": default}
    for name, values in CHOICES.items():
        for value in values:
            found[f"{name} {value}"] = _changed(default, name, value)
    return found


def _changed(default: SegmentOptions, name: str, value: float) -> SegmentOptions:
    changed = {name: value}
    if hasattr(default.sections, name):
        return replace(default, sections=replace(default.sections, **changed))  # type: ignore[arg-type]  # numbers
    return replace(default, boilerplate=replace(default.boilerplate, **changed))  # type: ignore[arg-type]  # numbers


def fold_of(site: str) -> int:
    """Return the fold of a site; all pages of a site are in one fold."""
    return int(hashlib.sha256(site.encode()).hexdigest(), 16) % _FOLDS


def folds(pages: Sequence[RealPage]) -> list[Fold]:
    """Choose the thresholds on all folds but one, and score them on that one.

    Word lists and class words are the same for all folds; they were written by reading pages.
    """
    scores = score_candidates(pages)
    done = []
    for fold in range(_FOLDS):
        seen = [page.name for page in pages if fold_of(page.site) != fold]
        held_out = [page.name for page in pages if fold_of(page.site) == fold]
        on_seen = {
            name: mean_score([by_page[page] for page in seen]) for name, by_page in scores.items()
        }
        chosen = max(on_seen, key=lambda name: _total(on_seen[name]))
        unseen = mean_score([scores[chosen][page] for page in held_out])
        done.append(Fold(chosen, unseen, on_seen[chosen]))
    return done


def score_candidates(pages: Sequence[RealPage]) -> dict[str, dict[str, PageScore]]:
    """Score every page once with every candidate; folds only choose among these scores."""
    tried = candidates()
    scores: dict[str, dict[str, PageScore]] = {name: {} for name in tried}
    for page in pages:
        # Parsing does not depend on the thresholds and takes nearly half of the time.
        events = parse_html(decode_html(page.html).utf8)
        known: dict[tuple[str, ...], PageScore] = {}
        for name, options in tried.items():
            found = tuple(_decided(events, options))
            # Most thresholds change few pages.
            if found not in known:
                known[found] = score_page(page, found)
            scores[name][page.name] = known[found]
    return scores


def _decided(events: list[Event], options: SegmentOptions) -> list[str]:
    walked = walk(events, zone_share=options.boilerplate.zone_share)
    decisions = decide_blocks(walked, options, declared=walked.language)
    return _with_headings(
        (kept.section, kept.block.text, kept.block.kind) for kept in iter_kept(decisions)
    )


def _total(found: Score) -> float:
    return found.f1 + found.kept + found.dropped


def _fold_rows(done: Sequence[Fold]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {
            "what": f"fold {number}, {fold.chosen}",
            "pages": fold.held_out.pages,
            **_side_by_side(asdict(fold.held_out), asdict(fold.tuned)),
        }
        for number, fold in enumerate(done)
    ]
    unseen = _mean_score([fold.held_out for fold in done])
    seen = _mean_score([fold.tuned for fold in done])
    pages = sum(fold.held_out.pages for fold in done)
    return [*rows, {"what": "mean of folds", "pages": pages, **_side_by_side(unseen, seen)}]


def _side_by_side(unseen: Mapping[str, float], seen: Mapping[str, float]) -> dict[str, object]:
    """Return each score on pages not tuned on, on those tuned on, and the gap between them."""
    found: dict[str, object] = {}
    for name in _SCORES:
        found |= {f"{name} unseen": unseen[name], f"{name} seen": seen[name]}
        found[f"{name} gap"] = round(seen[name] - unseen[name], 4)
    return found


_SCORES = ("f1", "kept", "dropped")


def _mean_score(scores: Sequence[Score]) -> dict[str, float]:
    return {name: _mean([getattr(found, name) for found in scores]) for name in _SCORES}


def exact_adversaries() -> tuple[int, int]:
    """Return how many of our own difficult pages give exactly their records, and how many are."""
    pages = read_adversaries()
    return sum(page.found() == list(page.records) for page in pages), len(pages)


def main() -> None:
    """Print one table and store its numbers."""
    bench_data = load_settings(os.environ).bench_data
    if bench_data is None:
        print("source_records: skipped, NEWS_PLATFORM_BENCH_DATA is not set")
        return
    pages = read_pages(Path(bench_data) / "pages")
    measured = measure(pages)
    rows = [_row(name, pages, done.found) | _rates(done) for name, done in measured.items()]
    best = measured[_SCORED].found
    kinds = {kind: [p for p in pages if p.kind == kind] for kind in sorted({p.kind for p in pages})}
    parts = [_row(name, part, best) for name, part in kinds.items()]
    by_fold = _fold_rows(folds(pages))
    exact, adversaries = exact_adversaries()
    ours, theirs = measured["ours, text alone"], measured["resiliparse main content"]
    reach = {
        "adversaries exact": f"{exact} of {adversaries}",
        "speed, of resiliparse, all rounds": round(ours.all_rounds / theirs.all_rounds, 3),
        "speed, of resiliparse, quickest": round(ours.quickest / theirs.quickest, 3),
    }
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, fmt_str_lengths=40):
        print(pl.DataFrame([*rows, *parts]))
        print(pl.DataFrame(by_fold))
    print(reach)
    RESULTS.parent.mkdir(exist_ok=True)
    results = {"segmenters": rows, "parts": parts, "folds": by_fold, "reach": reach}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


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
