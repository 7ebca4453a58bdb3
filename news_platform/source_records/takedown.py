"""Delete the snapshots of taken-down pages, and build the records of their institutions again."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

from news_platform.datasets.source_records import (
    SOURCE_RECORDS,
    institution_folder,
    institution_of,
    records_path,
)
from news_platform.source_records.pipeline import (
    RecordsOptions,
    build_institution,
    is_taken_down,
    iter_snapshots,
)
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import covered_urls

PAGE_SNAPSHOTS = "page_snapshots"


def takedown_parts(store: ObjectStore, *, options: RecordsOptions) -> list[TakedownPart]:
    """Return the parts of the snapshots and of the records; a partition is an institution."""
    return [
        SimplePart(
            SOURCE_RECORDS.name,
            partial(find_records, store),
            lambda key, it: clean_records(store, key, it, options=options),
        ),
        SimplePart(
            PAGE_SNAPSHOTS, partial(find_snapshots, store), partial(delete_snapshots, store)
        ),
    ]


def find_snapshots(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the snapshots of covered pages by institution."""
    gone = (info for info in iter_snapshots(store) if is_taken_down(store, info, takedowns))
    return Counter(institution_of(info.path) or "" for info in gone)


def delete_snapshots(store: ObjectStore, institution: str, takedowns: Takedowns) -> RemovedData:
    """Delete the snapshots of covered pages."""
    infos = list(store.list(institution_folder(institution)))
    gone = [info for info in infos if is_taken_down(store, info, takedowns)]
    store.delete(info.path for info in gone)
    return RemovedData(len(gone), sum(info.size_bytes for info in gone))


def find_records(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the records of covered pages by institution, and those that lose a snapshot."""
    found = dict.fromkeys(find_snapshots(store, takedowns), 0)
    for folder in store.list_folders(SOURCE_RECORDS.name):
        institution = folder.partition("institution=")[2]
        rows = _covered_records(store, institution, takedowns)
        if rows or institution in found:
            found[institution] = rows
    return found


def _covered_records(store: ObjectStore, institution: str, takedowns: Takedowns) -> int:
    try:
        urls = read_table(store, records_path(institution), SOURCE_RECORDS)["url"]
    except NotFound:
        return 0
    return int(urls.is_in(list(covered_urls(urls, takedowns))).sum())


def clean_records(
    store: ObjectStore, institution: str, takedowns: Takedowns, *, options: RecordsOptions
) -> RemovedData:
    """Delete the snapshots of covered pages and build the rest of the institution again."""
    rows = _covered_records(store, institution, takedowns)
    before = store.find(records_path(institution))
    deleted = delete_snapshots(store, institution, takedowns)
    if before is None and not deleted.rows:
        return deleted
    build_institution(institution, store=store, options=options)
    after = store.head(records_path(institution)).size_bytes
    size = max(0, (before.size_bytes if before else 0) - after)
    return RemovedData(rows, deleted.bytes_removed + size, after)
