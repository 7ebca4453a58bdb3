"""A store that dies at a chosen operation, and a model of what the domain store must then hold."""

import os
import random
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import BinaryIO, TypeVar

from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import gc_bucket
from news_platform.domain_store.pipeline import build_buckets, compact_buckets
from news_platform.storage.objects.store import ByteStream, ObjectInfo, ObjectStore
from news_platform_tests.domain_store.pages import SMALL, stage

OPTIONS = replace(SMALL, buckets=2, fan=3)
HOSTS = ("org.a", "org.b", "org.c")
DOMAINS = ("a.org", "b.org", "c.org")
Days = Mapping[str, tuple[str, ...]]
T = TypeVar("T")


class Crash(BaseException):
    """The process died here."""


@dataclass
class Fuse:
    """Counts operations and blows at one of them, before or after it took effect."""

    at: int
    is_after: bool
    is_kill: bool = False
    count: int = 0

    def __post_init__(self) -> None:
        self._lock = Lock()

    def run(self, operation: Callable[[], T]) -> T:
        """Do the operation, or die."""
        with self._lock:
            self.count += 1
            is_due = self.count == self.at
            if self.count > self.at:
                raise Crash  # Other threads die with the process.
        if is_due and not self.is_after:
            self._die()
        done = operation()
        if is_due:
            self._die()
        return done

    def _die(self) -> None:
        if self.is_kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise Crash


class DyingStore(ObjectStore):
    """An object store behind a fuse."""

    def __init__(self, store: ObjectStore, fuse: Fuse) -> None:
        super().__init__(store._backend, store._prefix)
        self._fuse = fuse

    def read_with_info(self, path: str) -> tuple[bytes, ObjectInfo]:
        return self._fuse.run(lambda: super(DyingStore, self).read_with_info(path))

    def read_ranges(self, path: str, starts: object, lengths: object) -> list[bytes]:
        read = super().read_ranges
        return self._fuse.run(lambda: read(path, starts, lengths))  # type: ignore[arg-type] # passed on

    def stream(self, path: str, *, start: int = 0, expected_size: int | None = None) -> ByteStream:
        opened = super().stream
        return self._fuse.run(lambda: opened(path, start=start, expected_size=expected_size))

    def put(self, path: str, body: bytes | Path | BinaryIO) -> ObjectInfo:
        return self._fuse.run(lambda: super(DyingStore, self).put(path, body))

    def put_if_absent(self, path: str, body: bytes) -> bool:
        return self._fuse.run(lambda: super(DyingStore, self).put_if_absent(path, body))

    def compare_and_set(self, path: str, body: bytes, *, etag: str | None) -> str:
        return self._fuse.run(
            lambda: super(DyingStore, self).compare_and_set(path, body, etag=etag)
        )

    def list(self, prefix: str = "", *, name_prefix: str = "") -> Iterator[ObjectInfo]:
        listed = super().list
        return self._fuse.run(lambda: iter(tuple(listed(prefix, name_prefix=name_prefix))))

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._fuse.run(lambda path=path: super(DyingStore, self).delete([path]))  # type: ignore[misc] # a default binds it


@dataclass(frozen=True)
class Step:
    """One event: a day is added, changed or removed, or the store is maintained."""

    day: str
    hosts: tuple[str, ...]
    kind: str
    now: datetime

    def run(self, store: ObjectStore, options: BuildOptions = OPTIONS) -> None:
        """Do it, from the first operation to the last; doing it again must be harmless."""
        everything = range(options.buckets)
        if self.kind == "build":
            stage(store, {self.day: self.hosts}, options=options)
            build_buckets(everything, store=store, options=options, now=self.now)
        elif self.kind == "compact":
            compact_buckets(everything, store=store, options=options, now=self.now)
        else:
            for bucket in everything:
                gc_bucket(store, bucket, options=options, now=self.now)


def random_step(rng: random.Random, now: datetime) -> Step:
    """Return what happens next."""
    kind = rng.choices(["build", "compact", "sweep"], [8, 1, 1])[0]
    hosts = tuple(rng.choice(HOSTS) for _ in range(rng.choice([0, 1, 2, 3, 5])))
    return Step(f"2025-11-{rng.randrange(1, 8):02d}", hosts, kind, now)


def after(days: Days, step: Step) -> Days:
    """Return what the store must hold once a step is done."""
    if step.kind != "build":
        return days
    return {day: hosts for day, hosts in {**days, step.day: step.hosts}.items() if hosts}


def expected_urls(days: Days, domain: str) -> tuple[str, ...]:
    """Return the addresses that a domain must have, sorted."""
    host = ".".join(reversed(domain.split(".")))
    return tuple(
        sorted(
            f"https://{host}/{day}/{number}"
            for day, hosts in days.items()
            for number, name in enumerate(hosts)
            if name == host
        )
    )


def found_urls(reader: DomainStore, domain: str) -> tuple[str, ...]:
    """Return the addresses that a reader finds, sorted."""
    return tuple(sorted(str(row["uri"]) for row in reader.records(domain)))
