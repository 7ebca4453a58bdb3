"""Domains of a finished batch whose files are no longer whole, offered to the queue again."""

from news_platform.datasets.domain_metadata import SUCCESS_FILE, domain_folder
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.results import read_stored, whole_folders
from news_platform.storage.objects.store import ObjectStore


def reopen_lost(
    batch: PartitionInfo, *, store: ObjectStore, queue: DomainQueue, now: float
) -> list[str]:
    """Reopen the finished domains that lack a file or have other bytes; return their names.

    A batch with open messages is left alone: only somebody who runs a finished one again can mean
    that something is missing, and looking costs a read a file.
    """
    if queue.waiting(batch.key).messages:
        return []
    whole = whole_folders(store, batch, read_stored(store, batch))
    finished = {domain: domain_folder(batch, domain) for domain in queue.finished(batch.key)}
    lost = sorted(domain for domain, folder in finished.items() if folder not in whole)
    store.delete([f"{finished[domain]}/{SUCCESS_FILE}" for domain in lost])
    queue.reopen_finished(batch.key, lost, now=now)
    return lost
