"""Read stories as they are now: ids that were replaced lead to those under which they go on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.datasets.evidence import Evidence
from news_platform.datasets.stories import (
    STORIES,
    STORY_CHANGES,
    STORY_DAYS,
    STORY_MEMBERS,
)
from news_platform.errors import InputError
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values, scan_table
from news_platform.stories.similarity import Sketches, load_model, score_shares
from news_platform.stories.terms import Term, iter_terms, pack
from news_platform.stories.timeline import StoryMember, Timeline, tell
from news_platform.takedowns.build_filters import read_hidden, without_hidden
from news_platform.text.readable import did_you_mean

_SHOWN_TERMS = 12
_LEAST_ID = 8
# Texts that a timeline reads: those of the first members say what is new.
_MOST_TEXTS = 400


def stored_days(store: ObjectStore) -> list[str]:
    """Return the days that have stories, oldest first."""
    return sorted(path_values(info.path)["date"] for info in store.list(STORIES.name))


def scan_members(store: ObjectStore, days: Sequence[str]) -> pl.LazyFrame:
    """Return the articles of some days with their stories, without what is taken down."""
    paths = [STORY_MEMBERS.place.path(date=day) for day in days]
    rows = scan_table(store, paths, STORY_MEMBERS)
    return without_hidden(rows, STORY_MEMBERS, read_hidden(store))


def read_stories(store: ObjectStore, day: str) -> pl.DataFrame:
    """Return the stories of a day, largest first; without headlines that may be taken down."""
    rows = scan_table(store, [STORIES.place.path(date=day)], STORIES).collect()
    if hidden := read_hidden(store):
        members = scan_table(store, [STORY_MEMBERS.place.path(date=day)], STORY_MEMBERS)
        kept = without_hidden(members, STORY_MEMBERS, hidden).select("url_hash")
        gone = members.join(kept, on="url_hash", how="anti").collect()["story_id"].to_list()
        is_gone = pl.col("story_id").is_in(gone)
        rows = rows.with_columns(title=pl.when(~is_gone).then("title"))
    return rows.sort(["reports", "articles", "story_id"], descending=[True, True, False])


ORDERS = ("largest", "newest", "growing")


def chosen_stories(
    rows: pl.DataFrame, *, language: str = "", domains: Sequence[str] = (), sort: str = "largest"
) -> pl.DataFrame:
    """Return the stories of a day with a language and one of these outlets, in an order."""
    if language:
        rows = rows.filter(pl.col("languages").list.contains(language))
    if domains:
        rows = rows.filter(pl.col("domains").list.set_intersection(list(domains)).list.len() > 0)
    if sort == "newest":
        rows = rows.sort(["first_seen_at", "story_id"], descending=[True, False])
    if sort == "growing":
        rows = rows.filter(pl.col("is_growing")).sort(
            ["articles_of_day", "story_id"], descending=[True, False]
        )
    return rows


def unknown_values(rows: pl.DataFrame, *, language: str, domains: Sequence[str]) -> Iterator[str]:
    """Yield a line that names the known values for a filter that no story of the day fits."""
    for name, given, column in (
        ("language", (language,) if language else (), "languages"),
        ("outlet", domains, "domains"),
    ):
        known = set(rows[column].explode().drop_nulls())
        if given and known.isdisjoint(given):
            yield f"no story of {name} {given[0]!r}: {did_you_mean(given[0], known)}"


def resolve_story(store: ObjectStore, story_id: str) -> str:
    """Return the id under which a story goes on."""
    paths = sorted(info.path for info in store.list(STORY_CHANGES.name))
    rows = scan_table(store, paths, STORY_CHANGES).filter(pl.col("merged_into").is_not_null())
    changes = dict(rows.select("story_id", "merged_into").collect().iter_rows())
    seen = {story_id}
    while (later := changes.get(story_id)) is not None and later not in seen:
        seen.add(later)
        story_id = later
    return story_id


def find_story(store: ObjectStore, given: str) -> str:
    """Return the id of a story by its first letters, or by those of an id that it had before.

    Raise InputError if there is none, or more than one.
    """
    if len(given) < _LEAST_ID or not given.isalnum():
        message = f"invalid story {given[:80]!r}: expected at least {_LEAST_ID} letters of its id"
        raise InputError(message, thing=given[:80])
    rows = scan_members(store, stored_days(store))
    is_named = pl.col("story_id").str.starts_with(given.lower())
    found = rows.filter(is_named).select("story_id").unique().collect()["story_id"].to_list()
    if not found and (later := resolve_story(store, given)) != given:
        return later
    if len(found) != 1:
        what = "no story" if not found else f"{len(found)} stories"
        raise InputError(f"{what} begins with {given[:80]!r}: see `news-platform stories`")
    return str(found[0])


def read_timeline(store: ObjectStore, story_id: str) -> Timeline:
    """Return how a story went on."""
    days = stored_days(store)
    rows = scan_members(store, days).filter(pl.col("story_id") == story_id).collect()
    if not rows.height:
        raise InputError(f"no story {story_id!r}", thing=story_id)
    members = [member_of_row(row) for row in rows.iter_rows(named=True)]
    return tell(story_id, _with_texts(store, members), newest_day=days[-1])


def member_of_row(row: Mapping[str, object]) -> StoryMember:
    """Return a member by its row, without its text."""
    facts = {name: row[name] for name in StoryMember.__dataclass_fields__ if name in row}
    title = str(row["title"] or row["url"])
    return StoryMember(**{**facts, "title": title, "day": row["date"]})  # type: ignore[arg-type]


def _with_texts(store: ObjectStore, members: Sequence[StoryMember]) -> list[StoryMember]:
    chosen = members[:_MOST_TEXTS]
    texts = _texts(store, {one.day for one in chosen}, {one.url_hash for one in chosen})
    return [replace(one, text=texts.get(one.url_hash, ("", "", ""))[1]) for one in members]


def _texts(
    store: ObjectStore, days: Collection[str], hashes: Collection[str]
) -> Mapping[str, tuple[str, str, str]]:
    """Return title, text and language of some articles."""
    is_asked = pl.col("day").is_in(sorted(days)) & pl.col("url_hash").is_in(sorted(hashes))
    columns = ("url_hash", "title", "text", "language")
    frames = [
        DeltaDataset(store, table, STATISTICS_COLUMNS).scan().filter(is_asked).select(columns)
        for table in DELTA_TABLES
    ]
    rows = pl.concat(frames).collect().iter_rows()
    return {key: (title or "", text or "", language or "") for key, title, text, language in rows}


@dataclass(frozen=True, slots=True)
class LinkReasons:
    """Why two articles are linked: their score, what each kind of term adds, common terms."""

    score: int
    shares: Mapping[str, int]
    terms: tuple[str, ...]
    hours: int


def link_reasons(store: ObjectStore, member: StoryMember, other: StoryMember) -> LinkReasons | None:
    """Return why a member is linked to another; None if a text is not stored any more."""
    texts = _texts(store, {member.day, other.day}, {member.url_hash, other.url_hash})
    if not {member.url_hash, other.url_hash} <= texts.keys():
        return None
    terms = [list(iter_terms(*texts[one.url_hash])) for one in (member, other)]
    pair = (member, other)
    moments = [one.published_at or one.seen_at for one in pair]
    sketches = Sketches.of(
        [pack(one) for one in terms],
        [texts[one.url_hash][2] for one in pair],
        [one.domain for one in pair],
        [int(one.timestamp() // 3600) for one in moments],
    )
    score, shares = score_shares(load_model(), sketches)
    hours = abs(int((moments[0] - moments[1]).total_seconds() // 3600))
    return LinkReasons(score, shares, _common(*terms), hours)


def _common(one: Sequence[Term], other: Sequence[Term]) -> tuple[str, ...]:
    """Return the heaviest terms that two articles share, as people read them."""
    theirs = {term.key for term in other}
    shared = sorted(
        (term for term in one if term.key in theirs), key=lambda it: (-it.weight, it.text)
    )
    shown = (term.text.partition(" ")[2] or term.text.lstrip("#=@") for term in shared)
    return tuple(dict.fromkeys(shown))[:_SHOWN_TERMS]


def explain_links(
    store: ObjectStore, days: Collection[str], hashes: Collection[str]
) -> Iterator[Evidence]:
    """Yield why the article of these hashes and days is linked to another."""
    stored = stored_days(store)
    own = [day for day in stored if day in days]
    rows = scan_members(store, own).filter(pl.col("url_hash").is_in(sorted(set(hashes)))).collect()
    for row in rows.iter_rows(named=True):
        mine = member_of_row(row)
        other = _linked_member(store, mine, stored)
        reasons = link_reasons(store, mine, other) if other is not None else None
        if other is not None and reasons is not None:
            shares = ", ".join(f"{name} {share}" for name, share in reasons.shares.items())
            text = (
                f"It continues {other.url} ({reasons.hours} hours between) with a score of "
                f"{reasons.score} of 1,000. What the score would lose without each: {shares}. "
                f"Both have: {', '.join(reasons.terms)}."
            )
            details = {name: str(share) for name, share in reasons.shares.items()}
            details |= {"score": str(reasons.score), "linked_to": other.url}
            yield Evidence(STORY_MEMBERS.name, "linked", text, at=mine.seen_at, details=details)


def _linked_member(
    store: ObjectStore, member: StoryMember, stored: Sequence[str]
) -> StoryMember | None:
    if member.linked_to is None:
        return None
    until = [day for day in stored if day <= member.day][-STORY_DAYS:]
    rows = scan_members(store, until).filter(pl.col("url_hash") == member.linked_to).collect()
    return member_of_row(rows.row(0, named=True)) if rows.height else None
