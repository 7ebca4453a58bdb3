"""Domains surveyed before, asked anew: a research file of our own in the batch of a later day.

The earlier results stay where they are, and the policies of the two days can be compared.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import date

from news_platform.datasets.domain_queue import DomainQueueMessage
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.messages import UNKNOWN_AUTHORITY
from news_platform.domain_metadata.raw_files import import_file
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore


def offer_again(
    messages: Iterable[DomainQueueMessage], *, day: date, store: ObjectStore
) -> dict[str, str]:
    """Write a research file for each batch of `day` that these domains belong to.

    Return the files by their batch. Doing it twice writes one file. Raise InputError when a domain
    was researched on that day or after it: its survey is not to be dated back.
    """
    batches: dict[PartitionInfo, dict[str, DomainQueueMessage]] = {}
    for message in messages:
        was = message.partition_info
        if was.date >= day:
            problem = f"its batch is of {was.date}, give a later day than that"
            raise InputError(
                f"cannot survey {message.registrable_domain!r} again on {day}: {problem}",
                thing=message.registrable_domain,
            )
        batch = PartitionInfo.of(was.country, was.category, day)
        batches.setdefault(batch, {}).setdefault(message.registrable_domain, message)
    return {
        batch.key: import_file(
            store, batch, name=batch.key, body=research_again(batch, list(found.values()))
        )
        for batch, found in batches.items()
    }


def research_again(batch: PartitionInfo, messages: Sequence[DomainQueueMessage]) -> bytes:
    """Return a research file that names the domains of these messages, in order of their names."""
    meta = {
        "dataset_id": f"resurvey-{batch.key}",
        "country": batch.country,
        "category": batch.category,
        "discovered_at": str(batch.date),
        "research_methods": ["resurvey"],
        "engine": "domain_queue",
        "record_count": len(messages),
    }
    ordered = sorted(messages, key=lambda message: message.registrable_domain)
    records = [_record(message) for message in ordered]
    return json.dumps({"meta": meta, "records": records}, indent=1).encode()


def _record(message: DomainQueueMessage) -> dict[str, str | None]:
    known = message.authority != UNKNOWN_AUTHORITY
    return {
        "raw_url": message.domain_url,
        "normalized_domain": message.registrable_domain,
        "source_type": message.authority if known else None,
        "discovery_method": "resurvey",
    }
