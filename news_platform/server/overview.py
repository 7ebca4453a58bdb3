"""Build the documents that look over everything: totals, feeds, edits, and attention to a topic."""

import csv
import difflib
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.feeds import FEEDS, day_path
from news_platform.errors import InputError
from news_platform.rss.ledger.tables import RAW, REVISIONS
from news_platform.search.engine import FACETS, SearchOptions
from news_platform.search.index import OTHER
from news_platform.server.app_state import AppState
from news_platform.server.charts import every_day
from news_platform.server.documents import (
    AttentionDocument,
    EditDocument,
    EditsDocument,
    FeedDocument,
    FeedsDocument,
    OverviewDocument,
    SeriesDocument,
)
from news_platform.server.parameters import AttentionParameters, FeedParameters
from news_platform.server.versions import ARTICLE_LOGS, TAKEDOWNS
from news_platform.storage.objects.store import NotFound
from news_platform.storage.parquet import read_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.text.readable import spreadsheet_cell
from news_platform.web.urls import registrable_domain, url_host

_SHOWN_DAYS = 60
_SHOWN_VALUES = 12
_SHOWN_FEEDS = 500
_SHOWN_EDITS = 40
_MOST_QUERIES = 5
# Longer changes are compared line by line only: comparing words takes the square of their number.
_MOST_WORDS = 600
_WORDS = re.compile(r"\S+\s*")


def overview_document(state: AppState) -> OverviewDocument:
    """Return how much there is, from when to when, in which languages, and how fresh it is."""
    days, languages, domains = state.version.kept(
        "overview", lambda: _counts(state), *ARTICLE_LOGS, TAKEDOWNS
    )
    feeds = Counter(row["status"] for row in feed_rows(state))
    newest = sorted(days)[-_SHOWN_DAYS:]
    return OverviewDocument(
        articles=sum(days.values()),
        domains=domains,
        feeds=feeds["active"],
        first_day=min(days, default=None),
        last_day=max(days, default=None),
        days={day: days[day] for day in newest},
        languages=dict(Counter(languages).most_common(_SHOWN_VALUES)),
    )


def _counts(state: AppState) -> tuple[dict[str, int], dict[str, int], int]:
    """Return the articles by day and by language, and the number of their domains."""
    rows = state.tables.read(
        lambda all_: all_.group_by("day", "language").agg(count=pl.col("url_hash").n_unique())
    )
    domains = state.tables.read(lambda all_: all_.select(pl.col("domain").n_unique()))
    days, languages = Counter[str](), Counter[str]()
    for day, language, count in rows.iter_rows():
        days[day] += count
        languages[language or "unknown"] += count
    return days, languages, int(domains.item())


def feed_rows(state: AppState) -> list[dict[str, Any]]:
    """Return all feeds as the newest day of the dataset has them, without what is taken down."""
    rows = state.version.kept("feeds", lambda: _read_feeds(state))
    return [row for row in rows if not state.takedowns.covers_url(row["feed_url"])]


def _read_feeds(state: AppState) -> list[dict[str, Any]]:
    paths = sorted(info.path for info in state.store.list(FEEDS.name))
    days = [path.partition("date=")[2].partition("/")[0] for path in paths]
    if not days:
        return []
    try:
        rows = read_table(state.store, day_path(FEEDS, max(days)), FEEDS).to_dicts()
    except NotFound:
        return []  # replaced at this moment
    return [{**row, "domain": registrable_domain(url_host(row["feed_url"]))} for row in rows]


def feeds_document(state: AppState, asked: FeedParameters) -> FeedsDocument:
    """Return the feeds by group and health, with why each is as it is."""
    rows = feed_rows(state)
    wanted = [
        row
        for row in rows
        if asked.group in ("", row["feed_group"] or "")
        and asked.status in ("", row["status"])
        and asked.q.lower() in f"{row['feed_url']} {row['title']}".lower()
    ]
    wanted.sort(
        key=lambda row: (row["feed_group"] or "~", row["health_score"] or 0, row["feed_url"])
    )
    return FeedsDocument(
        count=len(wanted),
        groups=dict(sorted(Counter(row["feed_group"] or "" for row in rows).items())),
        statuses=dict(sorted(Counter(row["status"] for row in rows).items())),
        feeds=tuple(map(FeedDocument.of, wanted[:_SHOWN_FEEDS])),
    )


def edits_document(state: AppState) -> EditsDocument:
    """Return the newest changes by the publishers, and the most edited articles."""
    engine = state.ledger
    if engine is None:
        return EditsDocument(edits=(), most_edited=())
    columns = (RAW.c.article_url, RAW.c.url_hash, RAW.c.title, RAW.c.source, RAW.c.language)
    newest = sa.select(*columns, REVISIONS.c.revised_at, REVISIONS.c.rev_n, REVISIONS.c.delta)
    counted = sa.func.count().label("rev_n")
    last = sa.func.max(REVISIONS.c.revised_at).label("revised_at")
    most = sa.select(*columns, counted, last, sa.literal("").label("delta")).group_by(*columns)
    with read_transaction(engine) as connection:
        edits, edited = (
            connection.execute(
                chosen.join(RAW, RAW.c.row_id == REVISIONS.c.row_id)
                .order_by(first.desc(), RAW.c.url_hash)
                .limit(_SHOWN_EDITS)
            ).all()
            for chosen, first in ((newest, REVISIONS.c.revised_at), (most, counted))
        )
    return EditsDocument(
        edits=tuple(_edits(state, edits)),
        most_edited=tuple(one for one in _edits(state, edited) if one.revision > 1),
    )


def _edits(state: AppState, rows: Sequence[Any]) -> Iterator[EditDocument]:
    for row in rows:
        if not state.takedowns.covers_url(row.article_url):
            headline, text = split_delta(row.delta)
            yield EditDocument(
                url=row.article_url,
                url_hash=row.url_hash,
                title=row.title,
                domain=registrable_domain(url_host(row.article_url)),
                language=row.language,
                at=row.revised_at.astimezone(UTC),
                revision=row.rev_n,
                headline=tuple(word_changes(headline)),
                parts=tuple(word_changes(text)),
            )


def split_delta(delta: str) -> tuple[str, str]:
    """Return what a revision changed in the headline, and what in the text, as lines of a diff."""
    if not delta.startswith("--- "):
        return "", delta
    old, new, *text = delta.split("\n", 2)
    return f"-{old[4:]}\n+{new[4:]}", "".join(text)


def word_changes(delta: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a change of lines as (`same`, `removed` or `added`, text), by words."""
    removed, added = (
        " ".join(line[1:] for line in delta.splitlines() if line.startswith(sign)) for sign in "-+"
    )
    old, new = _WORDS.findall(removed), _WORDS.findall(added)
    if max(len(old), len(new)) > _MOST_WORDS:
        yield from ((kind, text) for kind, text in (("removed", removed), ("added", added)) if text)
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            yield "same", "".join(old[a:b])
            continue
        yield from (
            (name, "".join(words))
            for name, words in (("removed", old[a:b]), ("added", new[c:d]))
            if words
        )


def attention_document(state: AppState, asked: AttentionParameters) -> AttentionDocument:
    """Return the share of all articles per day that each query finds, also by language and outlet.

    Raise InputError with the place of a mistake in a query.
    """
    if len(asked.queries) > _MOST_QUERIES:
        raise InputError(f"{len(asked.queries)} queries: expected at most {_MOST_QUERIES}")
    options = asked.options(newest=state.tables.newest_days(_SHOWN_DAYS))
    totals = {name: _totals(state, options, name) for name in FACETS}
    days = every_day(sorted(totals["day"]))
    series = [
        _series(state, query, options, totals, days) for query in dict.fromkeys(asked.queries)
    ]
    advice = (
        line
        for one in series
        if not one.count
        for line in state.news.unmatched_values(one.query, options)
    )
    return AttentionDocument(
        days=tuple(days),
        totals=tuple(totals["day"].get(day, 0) for day in days),
        series=tuple(series),
        advice=tuple(dict.fromkeys(advice)),
    )


def _totals(state: AppState, options: SearchOptions, column: str) -> Mapping[str, int]:
    wanted = pl.col("day").is_between(pl.lit(options.first_day), pl.lit(options.last_day))
    for name, values in (("language", options.languages), ("domain", options.domains)):
        wanted = wanted & pl.col(name).is_in(list(values)) if values else wanted
    rows = state.tables.read(
        lambda all_: (
            all_.filter(wanted)
            .group_by(pl.col(column).fill_null("unknown"))
            .agg(count=pl.struct("day", "url_hash").n_unique())
        )
    )
    return dict(rows.iter_rows())


def _series(
    state: AppState,
    query: str,
    options: SearchOptions,
    totals: Mapping[str, Mapping[str, int]],
    days: Sequence[str],
) -> SeriesDocument:
    found = state.news.search(query, options, snippets=False).answer
    shares = {
        name: {
            value: count / totals[name][value]
            for value, count in found.facets[name].items()
            if value != OTHER and totals[name].get(value)
        }
        for name in FACETS
    }
    return SeriesDocument(
        query=query,
        count=found.count,
        counts=tuple(found.facets["day"].get(day, 0) for day in days),
        shares=tuple(min(1.0, shares["day"].get(day, 0.0)) for day in days),
        languages=dict(Counter(shares["language"]).most_common(_SHOWN_VALUES)),
        outlets=dict(Counter(shares["domain"]).most_common(_SHOWN_VALUES)),
    )


def attention_csv(found: AttentionDocument) -> bytes:
    """Return one row per day and query."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("day", "query", "articles", "all_articles", "share"))
    for one in found.series:
        for day, count, total, share in zip(
            found.days, one.counts, found.totals, one.shares, strict=True
        ):
            writer.writerow(map(spreadsheet_cell, (day, one.query, count, total, f"{share:.6f}")))
    return out.getvalue().encode()
