"""Write and read the results of surveyed domains, and find those whose files need repair.

The success marker is written last, so a folder that has one was complete when it was written.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from pydantic import ValidationError

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    PROD_FOLDER,
    ROBOTS_FILE,
    SITEMAP_FILE,
    SUCCESS_FILE,
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    domain_folder,
    sanitized_domain,
)
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.fetchers import KnownFile, PreviousSurvey
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.survey import SurveyResult
from news_platform.errors import StorageError
from news_platform.storage.objects.store import NotFound, ObjectStore

DomainFiles = Mapping[str, frozenset[str]]
"""File names by the name of the domain's folder."""


def read_domain_files(store: ObjectStore, batch: PartitionInfo) -> DomainFiles:
    """Return the file names of every domain of a batch, from one LIST."""
    found: dict[str, set[str]] = {}
    for info in store.list(f"{PROD_FOLDER}/{batch.folder}"):
        folder, _, name = info.path.rpartition("/")
        found.setdefault(folder.rpartition("/")[2], set()).add(name)
    return {domain: frozenset(names) for domain, names in found.items()}


def write_result(
    store: ObjectStore, surveyed: SurveyResult, *, batch: PartitionInfo, stored: DomainFiles
) -> None:
    """Write the files, then the facts, then the marker if the outcome is final.

    Files that an earlier, unfinished survey stored and this one did not find are deleted.
    """
    domain = surveyed.metadata.registrable_domain
    folder = domain_folder(batch, domain)
    for file in surveyed.files:
        store.put(f"{folder}/{file.name}", file.body)
    # `stored` is the listing from the start of the run, so no LIST per domain is needed.
    left = stored.get(sanitized_domain(domain), frozenset())
    strays = left - {file.name for file in surveyed.files} - {METADATA_FILE, SUCCESS_FILE}
    if strays:
        store.delete([f"{folder}/{name}" for name in sorted(strays)])
    store.put(f"{folder}/{METADATA_FILE}", surveyed.metadata.model_dump_json(indent=1).encode())
    if surveyed.metadata.final:
        store.put(f"{folder}/{SUCCESS_FILE}", b"")


def finished_outcome(store: ObjectStore, batch: PartitionInfo, domain: str) -> str | None:
    """Return the outcome of a domain that has a success marker, or None if it must be surveyed.

    A marker without readable facts does not count.
    """
    folder = domain_folder(batch, domain)
    if not store.exists(f"{folder}/{SUCCESS_FILE}"):
        return None
    try:
        return DomainMetadata.model_validate_json(store.read(f"{folder}/{METADATA_FILE}")).outcome
    except (NotFound, ValidationError):
        return None


def read_metadata(store: ObjectStore, batch: PartitionInfo, domain: str) -> DomainMetadata | None:
    """Return the facts of a domain, or None if there are none yet."""
    try:
        return read_facts_file(store, f"{domain_folder(batch, domain)}/{METADATA_FILE}")
    except NotFound:
        return None


def read_robots(store: ObjectStore, batch: PartitionInfo, domain: str) -> str:
    """Return the stored robots.txt of a domain, '' if it has none."""
    try:
        body = store.read(f"{domain_folder(batch, domain)}/{ROBOTS_FILE}")
    except NotFound:
        return ""
    return body.decode("utf-8", "replace")


def read_facts_file(store: ObjectStore, path: str) -> DomainMetadata:
    """Return the facts stored in a file; raise StorageError if it holds something else."""
    try:
        return DomainMetadata.model_validate_json(store.read(path))
    except ValidationError as error:
        cause = f"{error.errors()[0]['msg']}; materialize its batch of domain_metadata again"
        message = f"invalid domain metadata in {store.uri(path)!r}: {cause}"
        raise StorageError(message, thing=path) from error


def read_previous(store: ObjectStore, batch: PartitionInfo, domain: str) -> PreviousSurvey | None:
    """Return the stored survey of a domain, or None if its facts are missing or damaged."""
    folder = domain_folder(batch, domain)
    try:
        facts = DomainMetadata.model_validate_json(store.read(f"{folder}/{METADATA_FILE}"))
    except (NotFound, ValidationError):
        return None  # an earlier result that is damaged does not stop today's survey
    hosts = {
        f"robots.{sanitized_domain(one.host)}.txt" if place else ROBOTS_FILE: one
        for place, one in enumerate((facts.robots, *facts.other_hosts))
    }
    named: dict[str, RobotsFacts | SitemapFacts] = {**hosts, SITEMAP_FILE: facts.sitemap}
    files = {
        name: _read_unchanged(store, f"{folder}/{name}", one)
        for name, one in named.items()
        if KnownFile(one).headers
    }
    return PreviousSurvey(facts, {name: body for name, body in files.items() if body is not None})


def _read_unchanged(
    store: ObjectStore, path: str, facts: RobotsFacts | SitemapFacts
) -> bytes | None:
    """Return a stored file; None if it is missing or not what the survey received."""
    try:
        body = store.read(path)
    except NotFound:
        return None
    return body if hashlib.sha256(body).hexdigest() == facts.sha256 else None


def complete_folders(
    store: ObjectStore, batch: PartitionInfo, stored: DomainFiles
) -> frozenset[str]:
    """Return the folders of a batch with a success marker and all files it stands for."""
    folders = {f"{PROD_FOLDER}/{batch.folder}/{name}": names for name, names in stored.items()}
    return frozenset(
        folder
        for folder, names in folders.items()
        if SUCCESS_FILE in names and not any(_broken(store, folder, names))
    )


def iter_broken(store: ObjectStore, batch: PartitionInfo) -> Iterator[str]:
    """Yield every contradiction to a success marker: files that are missing or have other bytes."""
    for domain, names in sorted(read_domain_files(store, batch).items()):
        if SUCCESS_FILE in names:
            yield from _broken(store, f"{PROD_FOLDER}/{batch.folder}/{domain}", names)


def _broken(store: ObjectStore, folder: str, names: frozenset[str]) -> Iterator[str]:
    if METADATA_FILE not in names:
        yield f"{folder}: has a success marker but no {METADATA_FILE}"
        return
    try:
        facts = DomainMetadata.model_validate_json(store.read(f"{folder}/{METADATA_FILE}"))
    except ValidationError:
        yield f"{folder}/{METADATA_FILE}: invalid domain metadata"
        return
    for name, sha256 in facts.files.items():
        if name not in names:
            yield f"{folder}/{name}: missing"
        elif hashlib.sha256(store.read(f"{folder}/{name}")).hexdigest() != sha256:
            yield f"{folder}/{name}: bytes differ from the recorded sha256"


def reopen_for_repair(
    batch: PartitionInfo, *, store: ObjectStore, queue: DomainQueue, now: float
) -> list[str]:
    """Reopen the finished domains with missing or changed files; return their names.

    A batch with open messages is skipped: its run has other work, and the check reads every file.
    Running a finished batch again can only mean that something is missing.
    """
    if queue.waiting(batch.key).messages:
        return []
    complete = complete_folders(store, batch, read_domain_files(store, batch))
    finished = {domain: domain_folder(batch, domain) for domain in queue.finished(batch.key)}
    damaged = sorted(domain for domain, folder in finished.items() if folder not in complete)
    # Without its marker a reopened domain is surveyed, not recognised as finished.
    store.delete([f"{finished[domain]}/{SUCCESS_FILE}" for domain in damaged])
    queue.reopen_finished(batch.key, damaged, now=now)
    return damaged


T = TypeVar("T")

# Results that finish within this time are written by one thread.
_GATHER_SECONDS = 0.02
# One group must take far less time than a lease, even if every write waits for the disk.
_MAX_GROUP = 16


class GroupedWriter(Generic[T]):
    """Write results in groups, on at most `threads` threads of the running loop's executor.

    Handing one result to a thread costs more CPU than producing it, and switching between threads
    costs more again, so results that finish within 20 ms are written together. `write` returns for
    each result why it could not be written, or ''.
    """

    def __init__(self, write: Callable[[Sequence[T]], Sequence[str]], *, threads: int) -> None:
        self._write = write
        self._idle = threads
        self._waiting: list[tuple[T, asyncio.Future[str]]] = []
        self._gathering = False

    async def store(self, result: T) -> str:
        """Return '' once the result is stored, else why it is not; raise an error of its group."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[str] = loop.create_future()
        self._waiting.append((result, stored))
        if not self._gathering:
            self._gathering = True
            loop.call_later(_GATHER_SECONDS, self._start)
        return await stored

    def _start(self) -> None:
        self._gathering = False
        loop = asyncio.get_running_loop()
        while self._idle and self._waiting:
            # An equal share for every idle thread, rounded up.
            share = min(-(-len(self._waiting) // self._idle), _MAX_GROUP)
            taken, self._waiting = self._waiting[:share], self._waiting[share:]
            self._idle -= 1
            group = loop.run_in_executor(None, self._write, [result for result, _ in taken])
            group.add_done_callback(partial(self._finish, [stored for _, stored in taken]))

    def _finish(
        self, waiters: Sequence[asyncio.Future[str]], group: asyncio.Future[Sequence[str]]
    ) -> None:
        error = group.exception()
        causes = group.result() if error is None else [""] * len(waiters)
        for stored, cause in zip(waiters, causes, strict=True):
            if stored.done():
                continue  # its waiter was cancelled
            if error is not None:
                stored.set_exception(error)
            else:
                stored.set_result(cause)
        self._idle += 1
        self._start()
