"""Members of stories in, one row per story out: counts, headline, names, and whether it grows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from news_platform.datasets.stories import COPY, STORIES
from news_platform.stories.meanings import tokens, word_prefix
from news_platform.stories.terms import term_weight

_MOST_DOMAINS = 200
_MOST_NAMES = 5
_MOST_TITLES = 50


@dataclass(frozen=True, slots=True)
class _Before:
    """What earlier days know about a story."""

    first_seen_at: datetime | None = None
    articles: int = 0
    reports: int = 0
    domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


def story_rows(members: pl.DataFrame, earlier: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of stories of a day: those with at least two articles.

    `earlier` are members of the days before it in the window, `known` the newest rows of their
    stories; a story that had one article until now has no row yet.
    """
    ids = members["story_id"].unique(maintain_order=True).to_list()
    older = earlier.filter(pl.col("story_id").is_in(ids))
    before = {
        row["story_id"]: _Before(
            row["first_seen_at"],
            row["articles"],
            row["reports"],
            tuple(row["domains"]),
            tuple(row["languages"]),
        )
        for row in known.filter(pl.col("story_id").is_in(ids)).iter_rows(named=True)
    }
    newest = earlier["day"].max() if earlier.height else None
    groups = {str(key[0]): rows for key, rows in older.group_by("story_id", maintain_order=True)}
    found = []
    for key, rows in members.group_by("story_id", maintain_order=True):
        story = str(key[0])
        past = groups.get(story)
        if rows.height + (past.height if past is not None else 0) > 1:
            was = before.get(story) or _summed(past)
            found.append(_row(story, rows, past, was, newest))
    return pl.DataFrame(found, schema=dict(STORIES.schema), orient="row")


def _summed(past: pl.DataFrame | None) -> _Before:
    if past is None:
        return _Before()
    return _Before(
        past["seen_at"].min(),  # type: ignore[arg-type]  # a column of times
        past["url_hash"].n_unique(),
        _reports(past),
        tuple(past["domain"].unique()),
        tuple(past["language"].unique()),
    )


def _reports(rows: pl.DataFrame) -> int:
    return rows.filter(pl.col("role") != COPY).height


def _row(
    story: str, rows: pl.DataFrame, past: pl.DataFrame | None, was: _Before, newest: object
) -> tuple[object, ...]:
    new = (
        rows if past is None else rows.filter(~pl.col("url_hash").is_in(past["url_hash"].to_list()))
    )
    domains = sorted({*was.domains, *rows["domain"]} - {None})[:_MOST_DOMAINS]
    everything = rows if past is None else pl.concat([past.select(rows.columns), rows])
    yesterday = 0
    if past is not None:
        yesterday = _reports(past.filter(pl.col("day") == newest))
    outlets = rows.filter(pl.col("role") != COPY)["domain"].n_unique()
    return (
        story,
        _central_title(everything),
        shared_names([title for title in everything["title"].head(_MOST_TITLES) if title]),
        min(filter(None, (was.first_seen_at, *rows["seen_at"]))),
        rows["seen_at"].max(),
        was.articles + new["url_hash"].n_unique(),
        was.reports + _reports(rows),
        rows["url_hash"].n_unique(),
        len(domains),
        domains,
        sorted({*was.languages, *rows["language"]} - {None, ""}),
        _reports(rows) > yesterday and outlets > 1,
    )


def _central_title(members: pl.DataFrame) -> str | None:
    """Return the headline of the article that most others are linked to, else of the first."""
    links = Counter(members["linked_to"].drop_nulls())
    titled = members.filter(pl.col("title").is_not_null(), pl.col("role") != COPY)
    rows = titled.select("url_hash", "title").rows()
    best = max(range(len(rows)), key=lambda at: (links[rows[at][0]], -at), default=None)
    return rows[best][1] if best is not None else None


def shared_names(titles: Sequence[str]) -> list[str]:
    """Return the words that most headlines share, rare by the shipped table, heaviest first."""
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for title in titles:
        # In the order of the title, so that the same spelling is shown in every process.
        words = (token for token in tokens(title) if len(token) > 2 or not token.isascii())
        for word in dict.fromkeys(words):
            begin = word_prefix(word)
            counts[begin] += 1
            if word[0].isupper() or begin not in spelled:
                spelled[begin] = word
    least = 2 if len(titles) > 1 else 1
    ranked = sorted(
        ((count * term_weight(begin), begin) for begin, count in counts.items() if count >= least),
        reverse=True,
    )
    return [spelled[begin] for _, begin in ranked[:_MOST_NAMES]]
