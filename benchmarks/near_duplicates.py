"""Near-duplicates on real articles: recall and precision by edit, and documents a second."""

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import polars as pl

from benchmarks import RESULTS_FOLDER
from benchmarks.near_duplicate_edits import MIXED, PLAIN, STRENGTHS, Edit
from benchmarks.stored_texts import store_texts
from news_platform.near_duplicates.candidates import THRESHOLD, sketch_of
from news_platform.near_duplicates.pipeline import build_day
from news_platform.near_duplicates.reading import read_clusters
from news_platform.settings import load_settings
from news_platform.storage.objects.store import open_store
from news_platform.text.normalize import jaccard, shingles

RESULTS = RESULTS_FOLDER / "near_duplicates.json"
MIN_CHARS = 500
GROUPS = {"plain": PLAIN, "mixed": MIXED}
_DAY = "2025-11-01"


@dataclass(frozen=True, slots=True)
class Score:
    """Pairs of an edit: alike by the plain definition, found among those, found at all."""

    edit: str
    alike: int = 0
    found_alike: int = 0
    found: int = 0
    found_same_page: int = 0

    @property
    def recall(self) -> float:
        """Return the share of pairs with Jaccard 0.8 and over that share a cluster."""
        return self.found_alike / self.alike if self.alike else 1.0

    @property
    def precision(self) -> float:
        """Return the share of pairs in one cluster that were made from one page."""
        return self.found_same_page / self.found if self.found else 1.0


def article_bodies(bench_data: Path) -> list[str]:
    """Return the article bodies of both labelled sets that are long enough to be edited.

    One page is there twice, a little changed; of such a pair the first is kept.
    """
    articles = bench_data / "articles"
    truth = json.loads((articles / "benchmark" / "ground-truth.json").read_bytes())
    bodies = [page["articleBody"] for page in truth.values()]
    for path in sorted((articles / "publishers" / "truth").glob("*.json")):
        bodies.append(json.loads(path.read_bytes())["body"])
    kept: dict[str, frozenset[str]] = {}
    for body in sorted(body for body in bodies if len(body) >= MIN_CHARS):
        found = shingles(body, 3)
        if all(jaccard(found, other) < 0.7 for other in kept.values()):
            kept[body] = found
    return list(kept)


def score_edit(name: str, edit: Edit, bodies: Sequence[str], *, seed: int) -> Score:
    """Cluster the pages beside one edit of each, for every strength, and add up the pairs."""
    chance = random.Random(seed)
    score = Score(name)
    for strength in STRENGTHS:
        edited = [edit(body, strength, chance, bodies) for body in bodies]
        score = _added(score, bodies, edited)
    return score


def _added(score: Score, bodies: Sequence[str], edited: Sequence[str]) -> Score:
    texts = {
        f"https://bench.example/{number}/{kind}": text
        for kind, given in (("page", bodies), ("edit", edited))
        for number, text in enumerate(given)
    }
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/root")
        store_texts(store, _DAY, texts)
        build_day(store, _DAY, days=1)
        rows = read_clusters(store, [_DAY])
    clusters: dict[str, list[str]] = {}
    for uri, name in rows.select("uri", "cluster_id").iter_rows():
        clusters.setdefault(name, []).append(uri.removeprefix("https://bench.example/"))
    found = {pair for members in clusters.values() for pair in combinations(sorted(members), 2)}
    alike = {
        (f"{number}/edit", f"{number}/page")
        for number, (body, text) in enumerate(zip(bodies, edited, strict=True))
        if jaccard(shingles(body, 3), shingles(text, 3)) >= THRESHOLD
    }
    same = {pair for pair in found if pair[0].split("/")[0] == pair[1].split("/")[0]}
    return Score(
        score.edit,
        alike=score.alike + len(alike),
        found_alike=score.found_alike + len(alike & found),
        found=score.found + len(found),
        found_same_page=score.found_same_page + len(same),
    )


def speed(bodies: Sequence[str]) -> dict[str, float]:
    """Return texts per second per core: sketched, and clustered as a day of articles."""
    count = len(bodies)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/root")
        texts = {f"https://bench.example/{number}": body for number, body in enumerate(bodies)}
        store_texts(store, _DAY, texts)
        return {
            "sketch": _rate(lambda: [sketch_of(body) for body in bodies], count),
            "day": _rate(lambda: build_day(store, _DAY, days=14), count),
        }


def _rate(work: Callable[[], object], count: int) -> float:
    started = time.process_time()
    work()
    return round(count / (time.process_time() - started))


def main() -> None:
    """Print one table and keep its figures."""
    bench_data = load_settings(os.environ).bench_data
    if bench_data is None:
        print("near_duplicates: skipped, NEWS_PLATFORM_BENCH_DATA is not set")
        return
    bodies = article_bodies(Path(bench_data))
    rows = [row(group, name, bodies) for group, edits in GROUPS.items() for name in edits]
    print(pl.DataFrame(rows).select("group", "edit", "alike", "recall", "found", "precision"))
    rates = speed(bodies)
    print("documents/s a core:", rates)
    RESULTS.parent.mkdir(exist_ok=True)
    document = {"pages": len(bodies), "edits": rows, "documents_per_second": rates}
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")


def row(group: str, name: str, bodies: Sequence[str]) -> dict[str, object]:
    """Return one line of the table."""
    score = score_edit(name, GROUPS[group][name], bodies, seed=len(name))
    measures = {"recall": round(score.recall, 4), "precision": round(score.precision, 4)}
    return {"group": group, **asdict(score), **measures}


if __name__ == "__main__":
    main()
