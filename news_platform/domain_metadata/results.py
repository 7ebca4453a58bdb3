"""Where a domain's results lie: written with the success marker last, and read back."""

import hashlib
from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    PROD_FOLDER,
    SUCCESS_FILE,
    DomainMetadata,
    domain_folder,
    sanitized_domain,
)
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.survey import SurveyResult
from news_platform.errors import StorageError
from news_platform.storage.objects.store import NotFound, ObjectStore

DomainFiles = Mapping[str, frozenset[str]]
"""File names by the folder of a domain."""


def read_domain_files(store: ObjectStore, batch: PartitionInfo) -> DomainFiles:
    """Return which files every domain of a batch has, by one LIST."""
    found: dict[str, set[str]] = {}
    for info in store.list(f"{PROD_FOLDER}/{batch.folder}"):
        folder, _, name = info.path.rpartition("/")
        found.setdefault(folder.rpartition("/")[2], set()).add(name)
    return {domain: frozenset(names) for domain, names in found.items()}


def write_result(
    store: ObjectStore, surveyed: SurveyResult, *, batch: PartitionInfo, stored: DomainFiles
) -> None:
    """Write the files, then the facts, then the marker if the outcome is final.

    What an earlier, unfinished survey left behind and this one did not find is removed.
    """
    domain = surveyed.metadata.registrable_domain
    folder = domain_folder(batch, domain)
    for file in surveyed.files:
        store.put(f"{folder}/{file.name}", file.body)
    left = stored.get(sanitized_domain(domain), frozenset())
    strays = left - {file.name for file in surveyed.files} - {METADATA_FILE, SUCCESS_FILE}
    if strays:
        store.delete([f"{folder}/{name}" for name in sorted(strays)])
    store.put(f"{folder}/{METADATA_FILE}", surveyed.metadata.model_dump_json(indent=1).encode())
    if surveyed.metadata.final:
        store.put(f"{folder}/{SUCCESS_FILE}", b"")


def finished_outcome(store: ObjectStore, batch: PartitionInfo, domain: str) -> str | None:
    """Return the outcome of a domain that has its success marker, None when it is to be surveyed.

    A marker without facts that can be read promises what is not there.
    """
    folder = domain_folder(batch, domain)
    if not store.exists(f"{folder}/{SUCCESS_FILE}"):
        return None
    try:
        return DomainMetadata.model_validate_json(store.read(f"{folder}/{METADATA_FILE}")).outcome
    except (NotFound, ValidationError):
        return None


def read_metadata(store: ObjectStore, batch: PartitionInfo, domain: str) -> DomainMetadata | None:
    """Return the facts of a domain, None when there are none yet."""
    try:
        return read_facts_file(store, f"{domain_folder(batch, domain)}/{METADATA_FILE}")
    except NotFound:
        return None


def read_facts_file(store: ObjectStore, path: str) -> DomainMetadata:
    """Return the facts in a file; raise StorageError when it holds something else."""
    try:
        return DomainMetadata.model_validate_json(store.read(path))
    except ValidationError as error:
        cause = f"{error.errors()[0]['msg']}; survey its batch again"
        message = f"not the facts of a domain: {store.uri(path)!r}: {cause}"
        raise StorageError(message, thing=path) from error


def complete_folders(
    store: ObjectStore, batch: PartitionInfo, stored: DomainFiles
) -> frozenset[str]:
    """Return the folders of a batch that have their success marker and all that it promises."""
    folders = {f"{PROD_FOLDER}/{batch.folder}/{name}": names for name, names in stored.items()}
    return frozenset(
        folder
        for folder, names in folders.items()
        if SUCCESS_FILE in names and not any(_broken(store, folder, names))
    )


def iter_broken(store: ObjectStore, batch: PartitionInfo) -> Iterator[str]:
    """Yield what contradicts a success marker: a file that is missing or has other bytes."""
    for domain, names in sorted(read_domain_files(store, batch).items()):
        if SUCCESS_FILE in names:
            yield from _broken(store, f"{PROD_FOLDER}/{batch.folder}/{domain}", names)


def _broken(store: ObjectStore, folder: str, names: frozenset[str]) -> Iterator[str]:
    if METADATA_FILE not in names:
        yield f"{folder}: marked as finished without {METADATA_FILE}"
        return
    try:
        facts = DomainMetadata.model_validate_json(store.read(f"{folder}/{METADATA_FILE}"))
    except ValidationError:
        yield f"{folder}/{METADATA_FILE}: not the facts of a domain"
        return
    for name, sha256 in facts.files.items():
        if name not in names:
            yield f"{folder}/{name}: missing"
        elif hashlib.sha256(store.read(f"{folder}/{name}")).hexdigest() != sha256:
            yield f"{folder}/{name}: bytes differ from the recorded sha256"


def reopen_for_repair(
    batch: PartitionInfo, *, store: ObjectStore, queue: DomainQueue, now: float
) -> list[str]:
    """Reopen the finished domains that lack a file or have other bytes; return their names.

    A batch with open messages is left alone: only somebody who runs a finished one again can mean
    that something is missing, and looking costs a read a file.
    """
    if queue.waiting(batch.key).messages:
        return []
    whole = complete_folders(store, batch, read_domain_files(store, batch))
    finished = {domain: domain_folder(batch, domain) for domain in queue.finished(batch.key)}
    lost = sorted(domain for domain, folder in finished.items() if folder not in whole)
    store.delete([f"{finished[domain]}/{SUCCESS_FILE}" for domain in lost])
    queue.reopen_finished(batch.key, lost, now=now)
    return lost
