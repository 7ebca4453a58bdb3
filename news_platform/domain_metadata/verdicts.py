"""The verdicts of a day's surveys, and what all domains allow and refuse now, with its age."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import polars as pl

from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.datasets.domain_surveys import SURVEY_VERDICTS, USAGE_VERDICTS
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.signals.verdict import EVERYBODY, Decision
from news_platform.domain_metadata.usage import StoredSurvey
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.build_filters import without_hidden
from news_platform.web.robots import AI_BOTS

_OPERATORS = {bot.name: bot.operator for bot in AI_BOTS}
_KEY = ("domain", "bot", "purpose")
# Each survey needs its robots.txt, a small object for which a thread mostly waits.
_READERS = 16


def verdict_frame(store: ObjectStore, facts: Sequence[DomainMetadata]) -> pl.DataFrame:
    """Return the verdicts that follow from surveys as table rows, sorted by domain."""

    def rows_of(one: DomainMetadata) -> list[dict[str, object]]:
        batch = PartitionInfo.of(one.country, one.category, one.date)
        return list(_rows(StoredSurvey(store, batch, one)))

    with ThreadPoolExecutor(_READERS) as readers:
        rows = list(chain.from_iterable(readers.map(rows_of, facts)))
    frame = pl.DataFrame(rows, schema=dict(SURVEY_VERDICTS.schema), orient="row")
    # A domain in two batches of a day counts once, as in the other tables.
    return frame.unique(_KEY, keep="first", maintain_order=True).sort(_KEY)


def _rows(survey: StoredSurvey) -> Iterator[dict[str, object]]:
    if not survey.is_conclusive:
        return
    facts = survey.facts
    for bot in survey.crawlers():
        for purpose in PURPOSES:
            yield {
                "domain": facts.registrable_domain,
                "country": facts.country,
                "bot": bot,
                "operator": _OPERATORS.get(bot),
                "purpose": purpose,
                **_decided(survey.decide(bot, purpose)),
                "surveyed_at": facts.collected_at,
            }


def _decided(found: Decision) -> dict[str, object]:
    """Return a verdict with what led to it; if that is more than one statement, with all texts."""
    stated = [one.statement for one in found.findings]
    columns: dict[str, object] = {"verdict": found.verdict, "is_stale": found.is_stale}
    if stated:
        first = stated[0]
        columns |= {
            "statement": "; ".join(dict.fromkeys(one.raw for one in stated)),
            "system": first.system,
            "source": first.source,
            "line": first.line,
            "read_at": first.read_at,
        }
    return columns


def scan_usage_verdicts(store: ObjectStore) -> pl.LazyFrame:
    """Return the verdicts of every domain's last survey, each with the day since when it holds.

    Before a crawler had rows of its own, it was treated as `*`.
    """
    every = ParquetEngine(store, SURVEY_VERDICTS).scan()
    now = every.filter(pl.col("date") == pl.col("date").max().over("domain"))
    everybody = every.filter(pl.col("bot") == EVERYBODY).drop("bot")
    own = every.select(*_KEY, "date", own="verdict")
    past = (
        now.select(_KEY)
        .join(everybody.select("domain", "purpose", "date", "verdict"), on=["domain", "purpose"])
        .join(own, on=[*_KEY, "date"], how="left")
        .with_columns(verdict=pl.coalesce("own", "verdict"))
        .sort("date")
    )
    begins = pl.col("verdict").ne_missing(pl.col("verdict").shift().over(_KEY))
    since = past.filter(begins).group_by(_KEY).agg(since=pl.col("date").max())
    return now.join(since, on=_KEY, how="left").select(*USAGE_VERDICTS.schema).sort(_KEY)


def read_usage_verdicts(
    store: ObjectStore,
    *,
    domain: str = "",
    bot: str = "",
    purpose: str | None = None,
    verdict: str | None = None,
) -> pl.DataFrame:
    """Return the verdicts that readers may see, by domain; of a crawler also those that it shares.

    A crawler without rows of its own in a domain is treated there as `*`.
    """
    rows = without_hidden(scan_usage_verdicts(store), USAGE_VERDICTS, store)
    for name, value in {"domain": domain, "purpose": purpose}.items():
        rows = rows.filter(pl.col(name) == value) if value else rows
    if bot:
        named = pl.col("bot").str.to_lowercase() == bot.lower()
        has_own = named.any().over("domain")
        rows = rows.filter(named | (~has_own & (pl.col("bot") == EVERYBODY)))
    return (rows.filter(pl.col("verdict") == verdict) if verdict else rows).collect()
