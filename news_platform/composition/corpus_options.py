"""From the settings of the corpus to its options, joined with what other features know."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from news_platform.corpus.export.pipeline import ExportOptions
from news_platform.corpus.export.selection import ExportSelection, Stated, StatedUsage, UsageRule
from news_platform.corpus.export.tokens import load_tokenizer
from news_platform.corpus.options import CorpusOptions
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.usage_history import UsageHistory
from news_platform.near_duplicates.reading import read_clusters
from news_platform.settings import CorpusSettings
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns


def corpus_options(given: CorpusSettings) -> CorpusOptions:
    """Return how the corpus is built."""
    return CorpusOptions(
        languages=frozenset(code.lower() for code in given.languages),
        domains=frozenset(domain.lower() for domain in given.domains),
        workers=max(1, given.workers),
        page_seconds=given.page_seconds,
        memory_bytes=given.memory_mb << 20,
        scratch=given.scratch,
        grace=timedelta(days=given.grace_days),
    )


def export_selection(given: CorpusSettings) -> ExportSelection:
    """Return which articles a monthly export takes, without its days."""
    return ExportSelection(
        days=(),
        languages=given.export_languages,
        min_words=given.export_min_words,
        without_flags=given.export_without_flags,
        rules=usage_rules(given.export_policy),
        strict=given.export_strict,
    )


def usage_rules(texts: tuple[str, ...]) -> tuple[UsageRule, ...]:
    """Parse `BOT:PURPOSE` texts; raise InputError for a purpose that no survey knows."""
    return tuple(UsageRule.parse(text, purposes=PURPOSES) for text in texts)


def stated_usage(store: ObjectStore) -> StatedUsage:
    """Return what the surveys under the root know about use at a time."""
    usage = UsageHistory(store)

    def stated(url: str, rule: UsageRule, at: datetime) -> Stated:
        found = usage.verdict(url, bot=rule.bot, purpose=rule.purpose, at=at)
        return Stated(found.verdict, found.surveyed_at)

    return stated


def export_options(given: CorpusSettings, store: ObjectStore) -> ExportOptions:
    """Return how an export is written, with what the surveys under the root know."""
    options = ExportOptions(
        stated_usage=stated_usage(store),
        covers=Takedowns.read(store, use="removal").covers,
        clusters_of=partial(read_clusters, store),
        count_tokens=load_tokenizer(),
        scratch=given.scratch,
    )
    if given.removal_contact is None:
        return options
    asked = f"Write to {given.removal_contact} and name the addresses; see the column `url`."
    return replace(options, removal=asked)
