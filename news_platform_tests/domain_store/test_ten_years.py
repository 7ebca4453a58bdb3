"""Years of days in one bucket: the manifest stays small, and nothing is lost."""

import random
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta

import pytest

from news_platform.domain_store.building.verify import verify_bucket
from news_platform.domain_store.layout import batches_path, current_path
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import read_current
from news_platform.domain_store.pipeline import build_buckets, compact_buckets
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform_tests.domain_store.faults import (
    Crash,
    Days,
    DyingStore,
    Fuse,
    expected_urls,
    found_urls,
)
from news_platform_tests.domain_store.pages import NOW, SMALL, news_rows

DOMAINS = ("a.org", "b.org")
OPTIONS = replace(SMALL, buckets=1, fan=4, grace=timedelta(days=2))
FIRST = date(2016, 1, 1)


def _day(number: int) -> str:
    return str(FIRST + timedelta(days=number))


def _stage(store: ObjectStore, day: str, hosts: tuple[str, ...]) -> None:
    # Without hosts the day has pages in other buckets only.
    rows = news_rows(hosts, day=day)
    stage_batch([rows], store=store, batch=day, inputs=_inputs(hosts), options=OPTIONS)


def _inputs(hosts: tuple[str, ...]) -> str:
    return fingerprint([" ".join(hosts)])


def _build(store: ObjectStore, number: int) -> None:
    now = NOW + timedelta(days=number)
    build_buckets([0], store=store, options=OPTIONS, now=now)


def _live(store: ObjectStore, *, days: int, seed: int = 1) -> tuple[Days, list[int]]:
    """Stage and build day by day; return what the bucket must hold and its manifests' sizes.

    Every fifth day an older one is staged again, every twentieth a builder dies first.
    """
    rng = random.Random(seed)
    held: dict[str, tuple[str, ...]] = {}
    sizes: list[int] = []
    for number in range(days):
        held[_day(number)] = rng.choice([(), ("org.a",), ("org.a", "org.b")])
        changed = [_day(number)]
        if number % 5 == 4:
            changed.append(_day(rng.randrange(number)))
            held[changed[-1]] = tuple(rng.choice(["org.a", "org.b"]) for _ in range(number % 4))
        for day in changed:
            _stage(store, day, held[day])
        if number % 20 == 19:
            fuse = Fuse(rng.randrange(1, 60), rng.random() < 0.5)
            with suppress(Crash):
                _build(DyingStore(store, fuse), number)
        _build(store, number)
        sizes.append(store.head(current_path(0)).size_bytes)
    return held, sizes


def _expect(store: ObjectStore, held: Days) -> None:
    manifest = read_current(store, 0, with_batches=True).manifest
    assert manifest is not None
    assert manifest.batch_inputs == {day: _inputs(hosts) for day, hosts in held.items()}
    assert verify_bucket(store, 0).problems == ()
    reader = DomainStore(store)
    for domain in DOMAINS:
        assert found_urls(reader, domain) == expected_urls(held, domain)


@pytest.mark.parametrize(
    "days", [60, pytest.param(3650, marks=[pytest.mark.soak, pytest.mark.timeout(7200)])]
)
def test_a_manifest_has_the_size_of_its_tiers_not_of_its_days(
    local_store: ObjectStore, days: int
) -> None:
    held, sizes = _live(local_store, days=days)
    _expect(local_store, held)
    # A segment takes about 300 bytes; there are at most three of each size, in six sizes.
    assert max(sizes) < 12_000
    # Days are named where they were replaced lately, and as the last day of a segment.
    assert sum(day in local_store.read(current_path(0)).decode() for day in held) < 30
    # The oldest day is replaced, and no other.
    held = {**held, _day(0): ("org.b", "org.a")}
    _stage(local_store, _day(0), held[_day(0)])
    _build(local_store, days)
    _expect(local_store, held)
    compact_buckets([0], store=local_store, options=OPTIONS, now=NOW + timedelta(days=days))
    _expect(local_store, held)


def test_a_lost_list_of_batches_is_built_again_and_never_compacted_away(
    local_store: ObjectStore,
) -> None:
    held, _ = _live(local_store, days=20)
    manifest = read_current(local_store, 0).manifest
    assert manifest is not None
    largest = max(manifest.segments, key=lambda segment: segment.size_bytes)
    local_store.delete([batches_path(0, largest.listing)])
    assert len(verify_bucket(local_store, 0).problems) == 1
    with pytest.raises(NotFound):
        compact_buckets([0], store=local_store, options=OPTIONS, now=NOW)
    _build(local_store, 20)
    _expect(local_store, held)
