"""A process that builds and is killed with -9 at a chosen operation; run by test_faults.py."""

import json
import sys
from datetime import datetime

from news_platform.storage.objects.store import StoreOptions, open_store
from news_platform_tests.domain_store.faults import DyingStore, Fuse, Step


def main(document: str) -> None:
    """Run one step on a store behind a fuse that kills this process."""
    given = json.loads(document)
    store = open_store(given["url"], options=StoreOptions(**given["options"]))
    fuse = Fuse(given["at"], given["is_after"], is_kill=True)
    step = Step(
        given["day"], tuple(given["hosts"]), given["kind"], datetime.fromisoformat(given["now"])
    )
    step.run(DyingStore(store, fuse))


if __name__ == "__main__":
    main(sys.argv[1])
