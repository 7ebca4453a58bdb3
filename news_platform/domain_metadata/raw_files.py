"""Find the research files under `raw/`, import new ones, parse them and mark them as read."""

import hashlib
import json
import math
from collections.abc import Iterator

from news_platform.datasets.research_datasets import (
    RAW_FOLDER,
    RAW_METADATA,
    SUCCESS_SUFFIX,
    PartitionInfo,
    SeedQueueMessage,
    is_raw_file,
    raw_file_number,
    seed_message,
)
from news_platform.domain_metadata.messages import DroppedResearchRecord
from news_platform.errors import InputError
from news_platform.storage.commit.markers import content_part, fingerprint_of
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.text.normalize import scrub_json

# More would make the asset page unreadable.
_MAX_SHOWN_BYTES = 64 * 1024


def raw_batches(store: ObjectStore) -> dict[str, str]:
    """Return the fingerprint of every batch's research files by partition key."""
    part = content_part(store)
    return {key: fingerprint_of(infos, part) for key, infos in batch_files(store).items()}


def batch_files(store: ObjectStore) -> dict[str, list[ObjectInfo]]:
    """Return every batch's research files by partition key."""
    found: dict[str, list[ObjectInfo]] = {}
    for info in store.list(RAW_FOLDER):
        try:
            seed = seed_message(info.path)
        except InputError:
            continue  # not the folder of a batch; `misplaced_files` reports it
        if seed is not None:
            found.setdefault(seed.partition_info.key, []).append(info)
    return found


def misplaced_files(store: ObjectStore) -> dict[str, str]:
    """Return the files named like research data outside any batch folder, with the reason."""
    found: dict[str, str] = {}
    for info in store.list(RAW_FOLDER):
        try:
            seed = seed_message(info.path)
        except InputError as error:
            found[info.path] = str(error)
            continue
        if seed is None and is_raw_file(info.path.rpartition("/")[2]):
            expected = "raw/country=CC/category=CAT/date=YYYY-MM-DD/raw_NNNN.json"
            found[info.path] = f"not in a batch folder: expected {expected}"
    return found


def batch_fingerprint(store: ObjectStore, batch: PartitionInfo) -> str:
    """Return the fingerprint of one batch's research files."""
    return fingerprint_of(_infos(store, batch), content_part(store))


def iter_seeds(store: ObjectStore, batch: PartitionInfo) -> Iterator[SeedQueueMessage]:
    """Yield the research files of a batch, in their order."""
    for info in _infos(store, batch):
        yield SeedQueueMessage(raw_file_path=info.path, partition_info=batch)


def parse_records(body: bytes, *, path: str) -> list[object]:
    """Return the records of a research file; raise InputError if it is not one.

    Their text is as in the file, not yet scrubbed.
    """
    try:
        # NaN and infinities are not JSON: they stay text, so that dropped records can be written.
        document = json.loads(body, parse_constant=str, parse_float=_number)
    except ValueError as error:
        raise InputError(f"invalid JSON in {path!r}: {error}", thing=path) from error
    except RecursionError as error:
        raise InputError(f"invalid JSON in {path!r}: nested too deeply", thing=path) from error
    records = document.get("records") if isinstance(document, dict) else None
    if not isinstance(records, list):
        expected = "expected a JSON object with a list `records`"
        raise InputError(f"{path!r} is not a research file: {expected}", thing=path)
    return records


def import_file(store: ObjectStore, batch: PartitionInfo, *, name: str, body: bytes) -> str:
    """Store a research file under the next free number and return its path.

    Importing the same bytes twice returns the first path. Nothing is ever overwritten.
    `raw_metadata.json` keeps its name.
    """
    folder = f"{RAW_FOLDER}/{batch.folder}"
    if name == RAW_METADATA:
        return _import_metadata(store, f"{folder}/{RAW_METADATA}", body)
    parse_records(body, path=name)
    infos = _infos(store, batch)
    for info in infos:
        # The sizes are known from the LIST: only files of the same size are read.
        if info.size_bytes == len(body) and store.read(info.path) == body:
            return info.path
    number = max((raw_file_number(info.path.rpartition("/")[2]) for info in infos), default=0)
    # Another import may take the same number at the same moment: then try the next one.
    while True:
        number += 1
        path = f"{folder}/raw_{number:04}.json"
        if store.put_if_absent(path, body):
            return path


def mark_read(store: ObjectStore, path: str) -> None:
    """Write the success marker of a research file whose domains are in the queue."""
    store.put_if_absent(f"{path}{SUCCESS_SUFFIX}", b"")


def write_dropped(store: ObjectStore, path: str, dropped: list[DroppedResearchRecord]) -> None:
    """Write the records that could not be queued to quarantine, one JSON line with reason each."""
    lines = [
        json.dumps({"index": one.index, "reason": one.reason, "record": one.record})
        for one in dropped
    ]
    store.put(quarantine_path(path), "".join(f"{line}\n" for line in lines).encode())


def quarantine_path(path: str) -> str:
    """Return the path of the dropped records of a research file."""
    return f"quarantine/research/{path.removeprefix(f'{RAW_FOLDER}/').removesuffix('.json')}.jsonl"


def read_raw_metadata(store: ObjectStore, batch: PartitionInfo) -> dict[str, object] | None:
    """Return the batch's `raw_metadata.json` for display, or None if there is none.

    If it cannot be displayed, return the reason under `problem`; the batch is queued all the same.
    """
    path = f"{RAW_FOLDER}/{batch.folder}/{RAW_METADATA}"
    if not store.exists(path):
        return None
    body = store.read(path)
    if len(body) > _MAX_SHOWN_BYTES:
        return {"problem": f"too large to show: {len(body)} bytes, at most {_MAX_SHOWN_BYTES}"}
    try:
        found = scrub_json(json.loads(body, parse_constant=str, parse_float=_number))
    except (ValueError, RecursionError) as error:
        return {"problem": f"invalid JSON: {error}"}
    return found if isinstance(found, dict) else {"content": found}


def sha256(body: bytes) -> str:
    """Return the digest that identifies the content of a research file."""
    return hashlib.sha256(body).hexdigest()


def _infos(store: ObjectStore, batch: PartitionInfo) -> list[ObjectInfo]:
    """Return the batch's research files, without those in folders below it."""
    folder = f"{RAW_FOLDER}/{batch.folder}/"
    return [info for info in store.list(folder) if is_raw_file(info.path.removeprefix(folder))]


def _number(text: str) -> float | str:
    """Return a number; one that JSON cannot represent (infinity) stays as its text."""
    number = float(text)
    return number if math.isfinite(number) else text


def _import_metadata(store: ObjectStore, path: str, body: bytes) -> str:
    if not store.put_if_absent(path, body) and store.read(path) != body:
        cure = "raw files are never overwritten; import it into another batch"
        raise InputError(f"{path!r} exists with other content: {cure}", thing=path)
    return path
