"""`news-platform retention`: show and delete what the policies in the settings no longer keep."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import click

from news_platform.ccnews.retention import StoredRows, expiring_days
from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.datasets.domain_store import STAGED_ROOT as STAGED
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.domain_store.fragments import rows_by_warc
from news_platform.domain_store.retention import expiring_batches, old_generations, stored_days
from news_platform.errors import ConfigError, InputError, NewsPlatformError
from news_platform.resources import Resources, build_options, open_full_texts
from news_platform.rss.article_files import (
    PAGES_FOLDER,
    expire_full_texts,
    expire_pages,
    find_expired_full_texts,
    find_expired_pages,
)
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.retention import ExpiringUnit, Expiry, apply_retention, planned

# A century. More is a mistake, and the calendar has an end.
_MOST_DAYS = 36_500


@click.group()
def retention() -> None:
    """Show or delete what the policies no longer keep.

    The policies are settings: NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS,
    NEWS_PLATFORM_RETAIN_STAGE_1_DAYS, NEWS_PLATFORM_FULLTEXT_KEEP_DAYS,
    NEWS_PLATFORM_PAGES_KEEP_DAYS and NEWS_PLATFORM_STORE_GRACE_DAYS. Without a policy a dataset is
    kept for ever.
    """


@retention.command()
@root_option
@json_option
def plan(root: str, as_json: bool) -> None:
    """Show what `apply` would delete, and change nothing."""
    policies = _policies(resources_for(root))
    _show([planned(one.dataset, one.units()) for one in policies], as_json=as_json)


@retention.command()
@root_option
@json_option
def apply(root: str, as_json: bool) -> None:
    """Delete what the policies no longer keep."""
    policies = _policies(resources_for(root, RootAccess.WRITE))
    found = [(policy, policy.units()) for policy in policies]
    # All of them first: a policy that is refused must leave everything as it is.
    _require_copies([planned(policy.dataset, units) for policy, units in found])
    done = [apply_retention(policy.store, policy.dataset, units) for policy, units in found]
    _show(done, as_json=as_json)
    failed = [f"{one.dataset} {key}: {why}" for one in done for key, why in one.failed.items()]
    if failed:
        raise NewsPlatformError(f"kept {len(failed)} that should go, first: {failed[0]}")


@dataclass(frozen=True, slots=True)
class Policy:
    """How long a dataset is kept, by which setting, and how its old units are found."""

    dataset: str
    setting: str
    keep_days: float | None
    store: ObjectStore
    find: Callable[[int], Mapping[str, ExpiringUnit]]

    def units(self) -> Mapping[str, ExpiringUnit]:
        """Return the units that are older than the dataset is kept."""
        return self.find(int(self.keep_days or 0))


def _policies(resources: Resources) -> list[Policy]:
    """Return the policies that are set, joined with what each feature can delete."""
    settings, store, now = resources.settings, resources.data_root.store, resources.clock.now()
    texts = open_full_texts(resources.data_root)
    pages = store.child(PAGES_FOLDER)
    stored = StoredRows(partial(stored_days, store), partial(rows_by_warc, store))
    options = build_options(settings.domain_store, store)
    rss, kept = settings.rss, settings.retention
    policies = (
        Policy(
            "full_texts",
            "NEWS_PLATFORM_FULLTEXT_KEEP_DAYS",
            rss.fulltext_keep_days,
            texts,
            partial(_old_files, resources, texts, find_expired_full_texts, expire_full_texts),
        ),
        Policy(
            RAW_NEWS.name,
            "NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS",
            kept.raw_news_days,
            store,
            lambda days: expiring_days(store, keep_days=days, now=now, stored=stored),
        ),
        Policy(
            STAGED,
            "NEWS_PLATFORM_RETAIN_STAGE_1_DAYS",
            kept.stage_1_days,
            store,
            lambda days: expiring_batches(store, keep_days=days, now=now),
        ),
        Policy(
            STORE,
            "NEWS_PLATFORM_STORE_GRACE_DAYS",
            settings.domain_store.grace_days,
            store,
            lambda _: old_generations(store, options=options, now=now),
        ),
        Policy(
            "pages",
            "NEWS_PLATFORM_PAGES_KEEP_DAYS",
            rss.pages_keep_days or None,
            pages,
            partial(_old_files, resources, pages, find_expired_pages, expire_pages),
        ),
    )
    chosen = [one for one in policies if one.keep_days is not None]
    for one in chosen:
        _require_days(one.setting, one.keep_days or 0)
    return chosen


def _require_days(variable: str, days: float) -> None:
    if not 0 <= days <= _MOST_DAYS:
        raise ConfigError(f"{variable} is {days}: expected 0 to {_MOST_DAYS} days", thing=variable)


def _old_files(
    resources: Resources,
    store: ObjectStore,
    find: Callable[..., list[ObjectInfo]],
    expire: Callable[..., int],
    days: int,
) -> Mapping[str, ExpiringUnit]:
    """Return the files of articles that are old enough; their rows in the ledger go first."""
    if next(iter(store.list()), None) is None:  # without a file there may be no ledger either
        return {}
    engine, now = resources.ledger.engine, resources.clock.now()
    files = find(engine, store, before=now - timedelta(days=days))

    def release() -> None:
        expire(engine, store, keep_days=days, now=now)

    return {"articles": ExpiringUnit(files, release=release)} if files else {}


def _require_copies(plans: Sequence[Expiry]) -> None:
    """Raise InputError when a policy would delete what nothing else holds."""
    refused = [f"{one.dataset} {key}: {why}" for one in plans for key, why in one.refused.items()]
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise InputError(f"refused to delete {refused[0]}{more}; nothing was deleted")


def _show(found: Sequence[Expiry], *, as_json: bool) -> None:
    lines = [f"{'dataset':<16}{'objects':>9}{'bytes':>16}  keys", *map(_line, found)]
    for one in found:
        for kind in ("waiting", "failed", "refused"):
            lines += [
                f"{one.dataset} {key}: {kind}, {why}"
                for key, why in sorted(getattr(one, kind).items())
            ]
    emit([one.as_json() for one in found], as_json=as_json, text="\n".join(lines))


def _line(one: Expiry) -> str:
    keys = sorted(one.objects)
    span = keys[0] if len(keys) == 1 else f"{len(keys)}: {keys[0]} to {keys[-1]}" if keys else ""
    return f"{one.dataset:<16}{sum(one.objects.values()):>9}{one.bytes:>16}  {span}".rstrip()
