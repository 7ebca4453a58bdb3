"""From the settings of the corpus to its options, joined with what other features know."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version

from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.filtering import (
    PRESETS,
    REFUSED,
    ExportSelection,
    QuotedStatement,
    Stated,
    StatedUsage,
    UsageRule,
)
from news_platform.corpus.export.pipeline import ExportOptions, load_tokenizer
from news_platform.corpus.export.receipts import load_signer
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.signals.verdict import EVERYBODY
from news_platform.domain_metadata.usage import UsageHistory
from news_platform.near_duplicates.candidates import export_sketch
from news_platform.near_duplicates.reading import read_clusters
from news_platform.resources import options_of
from news_platform.setting_sections.features import CorpusSettings
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.web.robots import AI_BOTS
from news_platform.web.urls import plain_host

# Texts that are not whole articles; a model would learn the cut or the repetition.
_WITHOUT_FLAGS = ("cut_text", "repeated_lines")

NO_POLICY = "none"
_STRICT = "strict"
_EVER = datetime.max.replace(tzinfo=UTC)


def corpus_options(given: CorpusSettings) -> CorpusOptions:
    """Return how the corpus is built."""
    return options_of(
        CorpusOptions,
        given,
        languages=frozenset(given.languages),
        domains=frozenset(map(plain_host, given.domains)),
        workers=max(0, given.workers),
        memory_bytes=given.memory_mb << 20,
    )


def export_selection(given: CorpusSettings) -> ExportSelection:
    """Return which articles a monthly export takes, without its days."""
    policies = tuple(text for text in given.export_policy if text not in (_STRICT, NO_POLICY))
    return ExportSelection(
        days=(),
        languages=given.export_languages,
        min_words=given.export_min_words,
        without_flags=_WITHOUT_FLAGS,
        rules=usage_rules(policies),
        strict=_STRICT in given.export_policy,
    )


def usage_rules(texts: tuple[str, ...]) -> tuple[UsageRule, ...]:
    """Parse presets and `BOT:PURPOSE`; raise InputError for what no survey knows."""
    bots = [bot.name for bot in AI_BOTS]
    return tuple(UsageRule.parse(text, purposes=PURPOSES, bots=bots) for text in texts)


def stated_usage(store: ObjectStore) -> StatedUsage:
    """Return what the surveys under the root know about use at a time."""
    usage = UsageHistory(store)
    functions = {bot.name: bot.purpose for bot in AI_BOTS}
    members = {
        name: (EVERYBODY, *(bot for bot, own in functions.items() if own == function))
        for name, (function, _) in PRESETS.items()
    }

    def stated(url: str, rule: UsageRule, at: datetime) -> Stated:
        bots = members.get(rule.bot, (rule.bot,))
        then = usage.verdict(url, bots=bots, purpose=rule.purpose, at=at)
        # What was refused since counts, too.
        now = usage.verdict(url, bots=bots, purpose=rule.purpose, at=_EVER)
        found = now if now.verdict in REFUSED and then.verdict not in REFUSED else then
        quotes = (
            QuotedStatement(it.source, it.file, it.line, it.raw, it.read_at, it.sha256)
            for it in (one.statement for one in found.findings)
        )
        return Stated(found.verdict, found.surveyed_at, found.bot, tuple(quotes))

    return stated


def export_options(given: CorpusSettings, store: ObjectStore) -> ExportOptions:
    """Return how an export is written, with what the surveys under the root know."""
    takedowns = Takedowns.read(store, use="export")
    options = ExportOptions(
        stated_usage=stated_usage(store),
        covers=takedowns.covers_export,
        takedowns=takedowns.fingerprint,
        lists=takedowns.list_versions(),
        sketch=export_sketch,
        sign=load_signer(given.export_signer) if given.export_signer else None,
        program=f"news-platform {version('news-platform')}",
        clusters_of=partial(read_clusters, store),
        count_tokens=load_tokenizer(),
        scratch=given.scratch,
    )
    if not given.contact:
        return options
    text = f"Contact {given.contact} and name the addresses; see the column `url`."
    return replace(options, removal=text)
