"""The stories dataset: events that articles of many outlets and languages report, day by day."""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    TEXTS,
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Role,
    RowSentence,
    Sensitivity,
    flag,
    parquet,
    window,
)

STORY_DAYS = 14
"""The days in which an article finds the one that it continues, its own included."""
FIRST, COPY, OWN_REPORT = "first", "copy", "own report"
"""The roles of an article in a story."""
_DAY = (Column("date", Role.day, "day of the articles, YYYY-MM-DD"),)
_ID = Column(
    "story_id",
    Role.fact,
    "url_hash of the story's first article; of a story whose first article was removed, "
    "story_changes has the id under which it goes on",
)

STORIES = Dataset(
    name="stories",
    group="stories",
    description="The events that several articles of a day and the days before report, across "
    "outlets and languages. Each article is linked to at most one earlier article of the 14 days "
    "that end with its own; a story is a tree of these links. Near-identical texts count as one "
    "report.",
    row="one story of at least two articles that has an article of the day",
    place=parquet("stories/date={date}/part-0.parquet"),
    partitions="day",
    parents=(
        ParentDataset("crawl_articles", window(STORY_DAYS)),
        ParentDataset("feed_articles", window(STORY_DAYS)),
        ParentDataset("near_duplicates", window(STORY_DAYS)),
    ),
    version=versions.STORIES,
    follows_version=True,
    per_run=7,
    sensitivity=Sensitivity.texts,
    cost="high",
    removal="rebuild",
    explorer="/stories",
    freshness=Freshness(30, 60),
    columns=(
        _ID,
        Column("title", Role.title, "headline of the article that most others are linked to"),
        Column("names", Role.text, "words that most headlines share, the rarest first", TEXTS),
        Column("first_seen_at", Role.time, "when the first article was fetched"),
        Column("last_seen_at", Role.time, "when the newest article of the day was fetched"),
        Column("articles", Role.count, "articles from the first day until this one"),
        Column("reports", Role.count, "the same without near-identical texts"),
        Column("articles_of_day", Role.count, "articles of this day"),
        Column("outlets", Role.count, "domains from the first day until this one"),
        Column("domains", Role.fact, "these domains, sorted, at most 200", TEXTS),
        Column("languages", Role.fact, "languages of the articles, sorted", TEXTS),
        flag("is_growing", "whether the day has more reports than the day before, of two outlets"),
    ),
    partition_columns=_DAY,
    sources={
        "crawl_articles.text": ("story_id", "articles", "reports", "articles_of_day", "is_growing"),
        "feed_articles.text": ("story_id", "articles", "reports", "articles_of_day", "is_growing"),
        "crawl_articles.title": ("title", "names"),
        "feed_articles.title": ("title", "names"),
        "crawl_articles.fetched_at": ("first_seen_at", "last_seen_at"),
        "feed_articles.fetched_at": ("first_seen_at", "last_seen_at"),
        "crawl_articles.domain": ("outlets", "domains"),
        "feed_articles.domain": ("outlets", "domains"),
        "crawl_articles.language": ("languages",),
        "feed_articles.language": ("languages",),
        "near_duplicates.cluster_id": ("reports",),
        "crawl_articles.day": ("date",),
        "feed_articles.day": ("date",),
    },
)
STORY_MEMBERS = Dataset(
    name="story_members",
    group="stories",
    description="Every article of a day with its story, the earlier article that it is linked to, "
    "and its role: the first of its story, a copy, or a report of its own.",
    row="one article and its story",
    place=parquet("story_members/date={date}/part-0.parquet"),
    written_by="stories",
    partitions="day",
    sensitivity=Sensitivity.texts,
    removal="rebuild",
    explorer="/stories",
    sentence=RowSentence(
        "It belongs to the story {story_id} as {role}; score of its link: {score}.", at="seen_at"
    ),
    columns=(
        _ID,
        Column("url_hash", Role.url_hash, "the article, as in all_articles"),
        Column("source", Role.fact, "`crawl` or `feed`"),
        Column("url", Role.url, "canonical address"),
        Column("domain", Role.domain, "registrable domain"),
        Column("language", Role.language, "ISO 639-1 code of the text"),
        Column("title", Role.title, "headline; null if the page states none"),
        Column("seen_at", Role.time, "when the article was fetched"),
        Column("published_at", Role.time, "date stated by the page or the feed; else null"),
        Column("linked_to", Role.fact, "url_hash of the earlier article; null for the first"),
        Column("score", Role.count, "how alike the two are, 0 to 1,000; null for the first"),
        Column("role", Role.fact, "`first`, `copy` of the article, or `own report`"),
    ),
    partition_columns=_DAY,
    sources={},
)
STORY_TERMS = Dataset(
    name="story_terms",
    group="stories",
    description="The terms by which the articles of a day are compared, for the days that follow.",
    row="one article that is not a copy of another of the day",
    place=parquet("story_terms/date={date}/part-0.parquet"),
    written_by="stories",
    partitions="day",
    removal="rebuild",
    # Twice the window: a late day makes those again that it needs.
    keep=2 * STORY_DAYS,
    columns=(
        Column("url_hash", Role.url_hash, "the article, as in all_articles"),
        Column("language", Role.language, "ISO 639-1 code of the text"),
        Column("domain", Role.domain, "registrable domain"),
        Column("hour", Role.count, "hours from 1970 until it was published; -1 if not stated"),
        Column("keys", Role.fact, "sorted 32-bit hashes of its terms", pl.Binary()),
        Column("weights", Role.fact, "what each term weighs", pl.Binary()),
        Column("marks", Role.fact, "kind of each term, and where it stands", pl.Binary()),
    ),
    partition_columns=_DAY,
)
STORY_CHANGES = Dataset(
    name="story_changes",
    group="stories",
    description="Ids of stories that a late day or a takedown replaced, so that they are still "
    "found. An id whose article was removed remains as a bare hash.",
    row="one id that was replaced",
    place=parquet("story_changes/date={date}/part-0.parquet"),
    written_by="stories",
    partitions="day",
    removal="never",
    columns=(
        Column("story_id", Role.fact, "the id that was replaced, or that a part split from"),
        Column("merged_into", Role.fact, "the id under which the story goes on; else null"),
        Column("split_from", Role.fact, "the id that this story was a part of; else null"),
    ),
    partition_columns=_DAY,
)
