"""`news-platform retention`: show and delete what the policies in the settings no longer keep."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import click

from news_platform.ccnews.retention import expire_raw_news, plan_raw_news
from news_platform.ccnews.tree_retention import expire_trees, plan_trees
from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.domain_store.fragments import rows_by_warc
from news_platform.domain_store.retention import (
    expire_generations,
    expire_stage_1,
    plan_generations,
    plan_stage_1,
    stored_days,
)
from news_platform.errors import ConfigError, InputError, NewsPlatformError
from news_platform.resources import Resources, build_options, open_full_texts
from news_platform.rss.full_text import (
    delete_left_full_texts,
    expire_full_texts,
    find_expired_full_texts,
)
from news_platform.rss.page_store import PAGES_FOLDER, expire_pages, find_expired_pages
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.retention import Expiry, expiry_of

FULL_TEXTS = "full_texts"
PAGES = "pages"
# A century. More is a mistake, and the calendar has an end.
_MOST_DAYS = 36_500


@click.group()
def retention() -> None:
    """Show or delete what the policies no longer keep.

    The policies are settings: NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS,
    NEWS_PLATFORM_RETAIN_TREE_DAYS, NEWS_PLATFORM_RETAIN_STAGE_1_DAYS,
    NEWS_PLATFORM_FULLTEXT_KEEP_DAYS, NEWS_PLATFORM_PAGES_KEEP_DAYS and
    NEWS_PLATFORM_STORE_GRACE_DAYS. Without a policy a dataset is kept for ever.
    """


@retention.command()
@root_option
@json_option
def plan(root: str, as_json: bool) -> None:
    """Show what `apply` would delete, and change nothing."""
    policies = list(_policies(resources_for(root)))
    _show([policy.plan() for policy in policies], as_json=as_json)


@retention.command()
@root_option
@json_option
def apply(root: str, as_json: bool) -> None:
    """Delete what the policies no longer keep."""
    policies = list(_policies(resources_for(root, RootAccess.WRITE)))
    # All of them first: a policy that is refused must leave everything as it is.
    _require_copies([policy.plan() for policy in policies])
    done = [policy.apply() for policy in policies]
    _show(done, as_json=as_json)
    failed = [f"{one.dataset} {key}: {why}" for one in done for key, why in one.failed.items()]
    if failed:
        raise NewsPlatformError(f"kept {len(failed)} that should go, first: {failed[0]}")


@dataclass(frozen=True, slots=True)
class Policy:
    """How to plan and how to apply the policy of one dataset."""

    plan: Callable[[], Expiry]
    apply: Callable[[], Expiry]


def _policies(resources: Resources) -> Iterator[Policy]:
    """Yield the policies that are set, joined with what each feature can delete."""
    settings, store = resources.settings, resources.data_root.store
    now = resources.clock.now()
    if (days := settings.rss.fulltext_keep_days) is not None:
        _require_days("NEWS_PLATFORM_FULLTEXT_KEEP_DAYS", days)
        yield _full_text_policy(resources, days)
    if (days := settings.retention.raw_news_days) is not None:
        _require_days("NEWS_PLATFORM_RETAIN_RAW_NEWS_DAYS", days)
        yield _raw_news_policy(store, days, resources)
    if (days := settings.retention.tree_days) is not None:
        _require_days("NEWS_PLATFORM_RETAIN_TREE_DAYS", days)
        yield _tree_policy(store, days, resources)
    if (days := settings.retention.stage_1_days) is not None:
        _require_days("NEWS_PLATFORM_RETAIN_STAGE_1_DAYS", days)
        yield _stage_1_policy(store, days, resources)
    _require_days("NEWS_PLATFORM_STORE_GRACE_DAYS", settings.domain_store.grace_days)
    options = build_options(settings.domain_store, store)
    yield Policy(
        partial(plan_generations, store, options=options, now=now),
        partial(expire_generations, store, options=options, now=now),
    )
    if days := settings.rss.pages_keep_days:
        _require_days("NEWS_PLATFORM_PAGES_KEEP_DAYS", days)
        yield _page_policy(resources, days)


def _require_days(variable: str, days: float) -> None:
    if not 0 <= days <= _MOST_DAYS:
        raise ConfigError(f"{variable} is {days}: expected 0 to {_MOST_DAYS} days", thing=variable)


def _raw_news_policy(store: ObjectStore, days: int, resources: Resources) -> Policy:
    now = resources.clock.now()

    def run(is_applied: bool) -> Expiry:
        stored = partial(stored_days, store)
        found = plan_raw_news(store, keep_days=days, now=now, stored_days=stored)
        if not is_applied:
            return found.expiry
        return expire_raw_news(store, found, now=now, rows_by_warc=partial(rows_by_warc, store))

    return Policy(partial(run, False), partial(run, True))


def _tree_policy(store: ObjectStore, days: int, resources: Resources) -> Policy:
    now = resources.clock.now()

    def run(is_applied: bool) -> Expiry:
        found = plan_trees(store, keep_days=days, now=now, stored_days=partial(stored_days, store))
        if not is_applied:
            return found.expiry
        return expire_trees(store, found, now=now, rows_by_warc=partial(rows_by_warc, store))

    return Policy(partial(run, False), partial(run, True))


def _stage_1_policy(store: ObjectStore, days: int, resources: Resources) -> Policy:
    now = resources.clock.now()

    def run(is_applied: bool) -> Expiry:
        found = plan_stage_1(store, keep_days=days, now=now)
        if found is None:
            return Expiry(STAGED)
        return expire_stage_1(store, found, now=now) if is_applied else found.expiry

    return Policy(partial(run, False), partial(run, True))


def _full_text_policy(resources: Resources, days: int) -> Policy:
    now, store = resources.clock.now(), open_full_texts(resources.data_root)

    def find() -> Expiry:
        if next(iter(store.list()), None) is None:  # without a file there may be no ledger either
            return Expiry(FULL_TEXTS)
        before = now - timedelta(days=days)
        found = find_expired_full_texts(resources.ledger.engine, store, before=before)
        return expiry_of(FULL_TEXTS, {"articles": found} if found else {})

    def expire() -> Expiry:
        found = find()
        if found.objects:
            expire_full_texts(resources.ledger.engine, store, keep_days=days, now=now)
            delete_left_full_texts(resources.ledger.engine, store)
        return found

    return Policy(find, expire)


def _page_policy(resources: Resources, days: int) -> Policy:
    now, store = resources.clock.now(), resources.data_root.store.child(PAGES_FOLDER)

    def find() -> Expiry:
        if next(iter(store.list()), None) is None:  # without a file there may be no ledger either
            return Expiry(PAGES)
        before = now - timedelta(days=days)
        found = find_expired_pages(resources.ledger.engine, store, before=before)
        return expiry_of(PAGES, {"articles": found} if found else {})

    def expire() -> Expiry:
        found = find()
        if found.objects:
            expire_pages(resources.ledger.engine, store, keep_days=days, now=now)
        return found

    return Policy(find, expire)


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
