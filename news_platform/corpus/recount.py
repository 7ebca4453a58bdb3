"""Let the marker of a day count the articles that are left after some were removed."""

from collections import Counter
from collections.abc import Mapping
from typing import cast

import polars as pl

from news_platform.corpus.pipeline import SHOWN_DOMAINS
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.storage.commit.markers import change_report, read_markers
from news_platform.storage.delta_engine import DeltaEngine


def recount_day(engine: DeltaEngine, day: str) -> None:
    """Correct the counts in a day's report; the fingerprint stays, so nothing becomes stale."""
    marker = read_markers(engine.store, engine.dataset.name).get(day)
    if marker is None:
        return
    files = [file for file in engine.table.files() if file.partition == day]
    left: pl.DataFrame = engine.scan([day]).select("language", "domain", "word_count").collect()
    domains = Counter(left["domain"])
    own = {
        "articles": left.height,
        "languages": dict(sorted(Counter(left["language"].fill_null("")).items())),
        # By name where counts are equal: the same day gives the same report.
        "top_domains": dict(
            sorted(domains.items(), key=lambda it: (-it[1], it[0]))[:SHOWN_DOMAINS]
        ),
        "words": int(left["word_count"].sum() or 0),
        "bytes": sum(file.size_bytes for file in files),
        "files": len(files),
        "version": engine.table.version(),
    }

    def change(report: Mapping[str, object]) -> Mapping[str, object]:
        dropped = Counter(cast(Mapping[str, int], report.get("dropped", {})))
        dropped[TAKEN_DOWN] += int(str(report.get("articles", 0))) - left.height
        return {**report, **own, "dropped": dict(sorted((+dropped).items()))}

    change_report(engine.store, marker, change)
