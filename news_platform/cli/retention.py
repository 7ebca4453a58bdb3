"""`news-platform retention`: show and delete what the policies in the settings no longer keep."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial

import click

from news_platform.ccnews.retention import expiring_days
from news_platform.cli.command import Output, command, table
from news_platform.datasets.domain_store import DOMAIN_BUCKETS, DOMAIN_STORE
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.registry import DATASETS
from news_platform.domain_store.fragments import rows_by_warc
from news_platform.domain_store.retention import expiring_batches, old_generations, stored_days
from news_platform.errors import ConfigError, InputError, NewsPlatformError, StorageError
from news_platform.resources import Resources, build_options, open_full_texts
from news_platform.rss.article_files import (
    PAGES_FOLDER,
    OwnedFiles,
    expire_full_texts,
    expire_pages,
    find_expired_full_texts,
    find_expired_pages,
    find_orphans,
)
from news_platform.rss.ledger.status import require_articles
from news_platform.settings import Settings
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.engines import FileEngine, require_small_share
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.retention import (
    ExpiringUnit,
    Expiry,
    apply_retention,
    expiring_units,
    planned,
)

# A century. More is a mistake, and the calendar has an end.
_MOST_DAYS = 36_500
# A worker writes a file before the row that refers to it.
_ORPHAN_DAYS = 1
Find = Callable[..., Mapping[str, ExpiringUnit]]
"""From `keep_days` to the units that are older."""


@click.group()
def retention() -> None:
    """Show or delete what the policies no longer keep.

    The policies are settings: NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS,
    NEWS_PLATFORM_RETAIN_STAGE_1_DAYS, NEWS_PLATFORM_FULLTEXT_KEEP_DAYS,
    NEWS_PLATFORM_PAGES_KEEP_DAYS and NEWS_PLATFORM_STORE_GRACE_DAYS. Without a policy a dataset is
    kept for ever.
    """


@command(retention)
def plan(resources: Resources) -> Output:
    """Show what `apply` would delete, and change nothing."""
    return _output([planned(name, units) for name, _, units in _expiring(resources)])


@command(retention, access=RootAccess.WRITE)
def apply(resources: Resources) -> Output:
    """Delete what the policies no longer keep."""
    found = _expiring(resources)
    # All of them first: a policy that is refused must leave everything as it is.
    _require_copies([planned(name, units) for name, _, units in found])
    return _output([apply_retention(store, name, units) for name, store, units in found])


def _expiring(resources: Resources) -> list[tuple[str, ObjectStore, Mapping[str, ExpiringUnit]]]:
    """Return what each policy that is set no longer keeps, with the store that holds it."""
    settings, store, now = resources.settings, resources.data_root.store, resources.clock.now()
    texts, pages = open_full_texts(resources.data_root), store.child(PAGES_FOLDER)
    options = build_options(settings.domain_store, store)
    # These go only if something else holds a copy, or knows that they are gone.
    own: Mapping[str, Find] = {
        RAW_NEWS.name: partial(
            expiring_days,
            store,
            now=now,
            stored_days=partial(stored_days, store),
            rows_by_warc=partial(rows_by_warc, store),
        ),
        DOMAIN_BUCKETS.name: partial(expiring_batches, store, now=now),
    }
    find_texts = partial(_old_files, resources, texts, find_expired_full_texts, expire_full_texts)
    find_pages = partial(_old_files, resources, pages, find_expired_pages, expire_pages)
    policies: list[tuple[str, int | str, ObjectStore, Find]] = [
        ("full_texts", "rss.fulltext_keep_days", texts, find_texts),
        *(
            (
                one.name,
                one.keep,
                store,
                own.get(one.name, partial(expiring_units, FileEngine(store, one), now=now)),
            )
            for one in DATASETS.values()
            if one.keep and one.is_asset
        ),
        (
            DOMAIN_STORE.name,
            "domain_store.grace_days",
            store,
            lambda keep_days: old_generations(store, options=options, now=now),
        ),
        ("pages", "rss.pages_keep_days", pages, find_pages),
        ("full texts of no article", _ORPHAN_DAYS, texts, partial(_orphans, resources, texts)),
        ("pages of no article", _ORPHAN_DAYS, pages, partial(_orphans, resources, pages)),
    ]
    chosen = [(one, _keep_days(settings, one[1])) for one in policies]
    return [
        (name, held_by, find(keep_days=days))
        for (name, _, held_by, find), days in chosen
        if days is not None
    ]


def _keep_days(settings: Settings, keep: int | str) -> int | None:
    """Return the days of a declaration or a setting; None for one that is not set."""
    if isinstance(keep, int):
        return keep
    section, _, name = keep.partition(".")
    given = getattr(settings, section)
    days = getattr(given, name)
    # Pages are not kept at all unless their setting is positive.
    if days is None or (keep == "rss.pages_keep_days" and not days):
        return None
    if not 0 <= days <= _MOST_DAYS:
        variable = str(type(given).model_fields[name].validation_alias)
        expected = f"expected 0 to {_MOST_DAYS} days"
        raise ConfigError(f"{variable} is {days}: {expected}", thing=variable)
    return int(days)


def _old_files(
    resources: Resources,
    store: ObjectStore,
    find: Callable[..., list[ObjectInfo]],
    expire: Callable[..., int],
    *,
    keep_days: int,
) -> Mapping[str, ExpiringUnit]:
    """Return the files of articles that are old enough; their rows in the ledger go first."""
    if next(iter(store.list()), None) is None:  # without a file there may be no ledger either
        return {}
    engine, now = resources.ledger.engine, resources.clock.now()
    files = find(engine, store, before=now - timedelta(days=keep_days))

    def release() -> None:
        expire(engine, store, keep_days=keep_days, now=now)

    return {"articles": ExpiringUnit(files, release=release)} if files else {}


def _orphans(
    resources: Resources, store: ObjectStore, *, keep_days: int
) -> Mapping[str, ExpiringUnit]:
    """Return the files that no row of the ledger refers to; a lost ledger deletes nothing."""
    if next(iter(store.list()), None) is None:
        return {}
    engine = resources.ledger.engine
    require_articles(engine, resources.data_root.store)
    owned, before = OwnedFiles.read(engine), resources.clock.now() - timedelta(days=keep_days)
    files = find_orphans(store, owned.full_texts | owned.pages, before=before)
    waiting = ""
    try:
        held = sum(1 for _ in store.list())
        require_small_share("article files", {"no article": len(files)}, held, unit="files")
    except StorageError as error:
        waiting = str(error)  # the ledger may be the one of another root
    return {"articles": ExpiringUnit(files, waiting=waiting)} if files else {}


def _require_copies(plans: Sequence[Expiry]) -> None:
    """Raise InputError when a policy would delete what nothing else holds."""
    refused = [f"{one.dataset} {key}: {why}" for one in plans for key, why in one.refused.items()]
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise InputError(f"refused to delete {refused[0]}{more}; nothing was deleted")


def _output(found: Sequence[Expiry]) -> Output:
    rows = [(one.dataset, sum(one.objects.values()), one.bytes, _span(one)) for one in found]
    lines = [table(("dataset", "objects", "bytes", "keys"), rows)]
    for one in found:
        for kind in ("waiting", "failed", "refused"):
            whys: Mapping[str, str] = getattr(one, kind)
            lines += [f"{one.dataset} {key}: {kind}, {whys[key]}" for key in sorted(whys)]
    failed = [f"{one.dataset} {key}: {why}" for one in found for key, why in one.failed.items()]
    message = f"kept {len(failed)} that should go, first: {next(iter(failed), None)}"
    failure = NewsPlatformError(message) if failed else None
    return Output([one.as_json() for one in found], "\n".join(lines), failure)


def _span(one: Expiry) -> str:
    keys = sorted(one.objects)
    return keys[0] if len(keys) == 1 else f"{len(keys)}: {keys[0]} to {keys[-1]}" if keys else ""
