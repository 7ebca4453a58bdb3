"""Keep by what copies of removed texts are found again: hashes, never the texts.

They are written before a partition loses its texts: a run that is killed keeps the same hashes
under the same name when it is repeated.
"""

import base64
import hashlib
import json
import struct
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from news_platform.datasets.takedowns import TEXTS
from news_platform.storage.objects.store import ObjectStore
from news_platform.text.normalize import text_hash

if TYPE_CHECKING:
    # It loads numpy, which a process that removes nothing never needs.
    from news_platform.takedowns.text_runs import RemovedTexts

_CONCURRENT_READS = 16


def keep_texts(store: ObjectStore, texts: Iterable[str | None]) -> None:
    """Record the hashes of texts that are about to be removed."""
    from news_platform.takedowns.text_runs import runs_of

    given = {text for text in texts if text and text.strip()}
    runs = sorted({_packed(found) for text in given if (found := runs_of(text))})
    body = json.dumps({"format": 1, "equal": sorted(map(text_hash, given)), "runs": runs}).encode()
    if given:
        name = hashlib.sha256(body).hexdigest()[:16]
        store.put_if_absent(f"{TEXTS}/{name}.json", body)


def read_removed_texts(store: ObjectStore) -> "RemovedTexts":
    """Return what is known of all texts that were removed from a root."""
    from news_platform.takedowns.text_runs import RemovedTexts

    paths = [info.path for info in store.list(TEXTS)]
    runs: set[str] = set()
    equal: set[str] = set()
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        for record in threads.map(lambda path: json.loads(store.read(path)), paths):
            runs.update(record["runs"])
            equal.update(record["equal"])
    return RemovedTexts([_unpacked(one) for one in sorted(runs)], frozenset(equal))


def _packed(runs: tuple[int, ...]) -> str:
    return base64.b64encode(struct.pack(f"<{len(runs)}Q", *runs)).decode()


def _unpacked(runs: str) -> tuple[int, ...]:
    return tuple(number for (number,) in struct.iter_unpack("<Q", base64.b64decode(runs)))
