"""Keep by what copies of removed texts are found again: hashes, never the texts.

They are written before a partition loses its texts: a run that is killed keeps the same hashes
under the same name when it is repeated.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from news_platform.datasets.takedowns import TEXTS
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.text_runs import RemovedTexts, runs_of
from news_platform.text.normalize import text_hash

_CONCURRENT_READS = 16


def keep_texts(store: ObjectStore, texts: Iterable[str | None]) -> None:
    """Record the hashes of texts that are about to be removed."""
    given = {text for text in texts if text and text.strip()}
    runs = sorted({_packed(found) for text in given if (found := runs_of(text))})
    body = json.dumps({"format": 1, "equal": sorted(map(text_hash, given)), "runs": runs}).encode()
    if given:
        name = hashlib.sha256(body).hexdigest()[:16]
        store.put_if_absent(f"{TEXTS}/{name}.json", body)


def read_removed_texts(store: ObjectStore) -> RemovedTexts:
    """Return what is known of all texts that were removed from a root."""
    paths = [info.path for info in store.list(TEXTS)]
    runs: set[str] = set()
    equal: set[str] = set()
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        for record in threads.map(lambda path: json.loads(store.read(path)), paths):
            runs.update(record["runs"])
            equal.update(record["equal"])
    return RemovedTexts([_unpacked(one) for one in sorted(runs)], frozenset(equal))


def _packed(runs: tuple[int, ...]) -> str:
    return base64.b64encode(np.array(runs, dtype="<u8").tobytes()).decode()


def _unpacked(runs: str) -> tuple[int, ...]:
    return tuple(map(int, np.frombuffer(base64.b64decode(runs), "<u8")))
