"""Write and read the results of surveyed domains, and find those whose files need repair.

The success marker is written last, so a folder that has one was complete when it was written.
"""

import hashlib
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    PROD_FOLDER,
    SUCCESS_FILE,
    DomainMetadata,
    RobotsFacts,
    domain_folder,
    sanitized_domain,
)
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.fetchers import PreviousSurvey, stored_files
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
    for name, body in surveyed.files.items():
        store.put(f"{folder}/{name}", body)
    # `stored` is the listing from the start of the run, so no LIST per domain is needed.
    left = stored.get(sanitized_domain(domain), frozenset())
    strays = left - {*surveyed.files, METADATA_FILE, SUCCESS_FILE}
    if strays:
        store.delete([f"{folder}/{name}" for name in sorted(strays)])
    store.put(f"{folder}/{METADATA_FILE}", surveyed.metadata.model_dump_json(indent=1).encode())
    if surveyed.metadata.final:
        store.put(f"{folder}/{SUCCESS_FILE}", b"")


def read_stored(store: ObjectStore, batch: PartitionInfo, domain: str, name: str) -> bytes:
    """Return a file of a domain as its host sent it, b'' if it has none."""
    try:
        return store.read(f"{domain_folder(batch, domain)}/{name}")
    except NotFound:
        return b""


def read_metadata(store: ObjectStore, batch: PartitionInfo, domain: str) -> DomainMetadata | None:
    """Return the facts of a domain, or None if there are none yet."""
    try:
        return read_facts_file(store, f"{domain_folder(batch, domain)}/{METADATA_FILE}")
    except NotFound:
        return None


def read_facts_file(store: ObjectStore, path: str) -> DomainMetadata:
    """Return the facts stored in a file; raise StorageError if it holds something else."""
    try:
        return DomainMetadata.model_validate_json(store.read(path))
    except ValidationError as error:
        cause = f"{error.errors()[0]['msg']}; materialize its batch of domain_metadata again"
        message = f"invalid domain metadata in {store.uri(path)!r}: {cause}"
        raise StorageError(message, thing=path) from error


def finished_outcome(store: ObjectStore, batch: PartitionInfo, domain: str) -> str | None:
    """Return the outcome of a domain that has a success marker, or None if it must be surveyed.

    A marker without readable facts does not count.
    """
    if not store.exists(f"{domain_folder(batch, domain)}/{SUCCESS_FILE}"):
        return None
    facts = _read_sound_facts(store, batch, domain)
    return facts.outcome if facts else None


def read_previous(store: ObjectStore, batch: PartitionInfo, domain: str) -> PreviousSurvey | None:
    """Return the stored survey of a domain, with the files that are as they were received.

    A sitemap is only read if its host may confirm it.
    """
    facts = _read_sound_facts(store, batch, domain)
    if facts is None:
        return None  # an earlier result that is damaged does not stop today's survey
    wanted = {
        name: one.sha256
        for name, one in stored_files(facts)
        if one.sha256 and (isinstance(one, RobotsFacts) or one.etag or one.last_modified)
    }
    bodies = {name: read_stored(store, batch, domain, name) for name in wanted}
    return PreviousSurvey(
        facts, {name: body for name, body in bodies.items() if _sha256(body) == wanted[name]}
    )


def _read_sound_facts(
    store: ObjectStore, batch: PartitionInfo, domain: str
) -> DomainMetadata | None:
    """Return the facts of a domain, None if they are missing or damaged."""
    body = read_stored(store, batch, domain, METADATA_FILE)
    try:
        return DomainMetadata.model_validate_json(body)
    except ValidationError:
        return None


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def iter_broken(store: ObjectStore, batch: PartitionInfo) -> Iterator[str]:
    """Yield the finished domains whose files are missing or have other bytes."""
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
        elif _sha256(store.read(f"{folder}/{name}")) != sha256:
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
    stored = read_domain_files(store, batch)
    damaged: list[str] = []
    for domain in sorted(queue.finished(batch.key)):
        names = stored.get(sanitized_domain(domain), frozenset())
        folder = domain_folder(batch, domain)
        if SUCCESS_FILE not in names or any(_broken(store, folder, names)):
            damaged.append(domain)
    # Without its marker a reopened domain is surveyed, not recognised as finished.
    store.delete([f"{domain_folder(batch, domain)}/{SUCCESS_FILE}" for domain in damaged])
    queue.reopen_finished(batch.key, damaged, now=now)
    return damaged
