"""Define the ledger's tables beside the sheet's: feed items, polls, alarms, analyses, alerts."""

import sqlalchemy as sa

from news_platform.datasets.dataset import Role
from news_platform.rss.ledger.tables import (
    METADATA,
    Moment,
    Texts,
    changed_seq_column,
    flag_column,
    number_column,
    text_column,
)
from news_platform.storage.sql.engine import ScrubbedText

# What each feed says about an article; the feed is compared with what it said before.
FEED_ITEMS = sa.Table(
    "feed_items",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("feed_url", ScrubbedText, primary_key=True, info={"role": Role.url}),
    text_column("item_id", Role.links),
    text_column("title", Role.title),
    sa.Column("published_at", Moment),
    sa.Column("updated_at", Moment),
    sa.Column("authors", Texts, info={"role": Role.people}),
    sa.Column("tags", Texts, info={"role": Role.text}),
    text_column("summary", Role.text),
    # The text of content:encoded or its like, without markup.
    text_column("content", Role.text),
    text_column("image_url", Role.links),
    # Each is "URL TYPE BYTES", as far as the feed states them.
    sa.Column("enclosures", Texts, info={"role": Role.links}),
    text_column("comments_url", Role.links),
    flag_column("is_paywalled"),
    # The hash of title, date and text; a different one is an update by the publisher.
    text_column("item_hash"),
    sa.Column("changed_at", Moment, nullable=False),
)

# The latest polls of each feed.
FEED_POLLS = sa.Table(
    "feed_polls",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("feed_url", ScrubbedText, nullable=False, info={"role": Role.url}),
    sa.Column("polled_at", Moment, nullable=False, index=True),
    sa.Column("outcome", ScrubbedText, nullable=False),
    # 0 means that there was no response.
    number_column("status_code"),
    number_column("items"),
    number_column("new_items"),
    number_column("updated_items"),
    number_column("skipped_items"),
    number_column("items_without_link"),
    flag_column("turned_over"),
    text_column("notes", Role.text),
    sa.Index("feed_polls_feed", "feed_url", "polled_at"),
    sqlite_autoincrement=True,
)

# The states that each article had, as far as they were recorded; never changed, only added to.
ARTICLE_STATES = sa.Table(
    "article_states",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("row_id", sa.Integer, nullable=False),
    sa.Column("status", ScrubbedText, nullable=False),
    sa.Column("at", Moment, nullable=False),
    text_column("reason", Role.text),
    sa.Index("article_states_row", "row_id", "id"),
    sqlite_autoincrement=True,
)

ANALYSES = sa.Table(
    "analyses",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
    text_column("summary", Role.text),
    sa.Column("keywords", Texts, info={"role": Role.text}),
    text_column("sentiment"),
    sa.Column("topics", Texts, info={"role": Role.text}),
    text_column("model"),
    sa.Column("analysed_at", Moment, nullable=False),
    # The text that was analysed; another one is analysed again.
    text_column("text_hash"),
    changed_seq_column(),
)

# Articles that match a saved query, and whether the webhook has been told.
ALERT_MATCHES = sa.Table(
    "alert_matches",
    METADATA,
    sa.Column("alert", ScrubbedText, primary_key=True),
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
    # Sent with the message, so that a receiver can drop a repeated one.
    sa.Column("delivery_id", ScrubbedText, nullable=False),
    sa.Column("matched_at", Moment, nullable=False),
    sa.Column("delivered_at", Moment),
    number_column("tries"),
    sa.Column("next_try_at", Moment),
    text_column("error_msg", Role.text),
    sa.Index("alert_matches_due", "delivered_at", "next_try_at"),
)

# Alarms about feeds and sources that are raised or healed; each is told once.
FEED_ALARMS = sa.Table(
    "feed_alarms",
    METADATA,
    sa.Column("kind", ScrubbedText, primary_key=True),
    sa.Column("thing", ScrubbedText, primary_key=True, info={"role": Role.url}),
    sa.Column("began_at", Moment, primary_key=True),
    text_column("detail", Role.text),
    sa.Column("told_at", Moment),
    sa.Column("healed_at", Moment),
    sa.Column("healing_told_at", Moment),
)
