"""From the settings of the corpus to its options, joined with what other features know."""

from dataclasses import replace
from datetime import datetime
from functools import partial

from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.filtering import ExportSelection, Stated, StatedUsage, UsageRule
from news_platform.corpus.export.pipeline import ExportOptions, load_tokenizer
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.usage import UsageHistory
from news_platform.near_duplicates.reading import read_clusters
from news_platform.resources import options_of
from news_platform.setting_sections.features import CorpusSettings
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.web.urls import plain_host

# Texts that are not whole articles; a model would learn the cut or the repetition.
_WITHOUT_FLAGS = ("cut_text", "repeated_lines")


def corpus_options(given: CorpusSettings) -> CorpusOptions:
    """Return how the corpus is built."""
    return options_of(
        CorpusOptions,
        given,
        languages=frozenset(given.languages),
        domains=frozenset(map(plain_host, given.domains)),
        workers=max(1, given.workers),
        memory_bytes=given.memory_mb << 20,
    )


def export_selection(given: CorpusSettings) -> ExportSelection:
    """Return which articles a monthly export takes, without its days."""
    return ExportSelection(
        days=(),
        languages=given.export_languages,
        min_words=given.export_min_words,
        without_flags=_WITHOUT_FLAGS,
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
    if not given.contact:
        return options
    text = f"Contact {given.contact} and name the addresses; see the column `url`."
    return replace(options, removal=text)
