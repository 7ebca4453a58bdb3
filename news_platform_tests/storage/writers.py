"""Programs that tests run as separate processes, to race or kill them."""

import sys
from itertools import count

from news_platform.errors import Conflict, NewsPlatformError
from news_platform.storage.commit.markers import publish
from news_platform.storage.objects.store import ObjectStore, open_store


def count_up(store: ObjectStore, times: int) -> None:
    """Add one to the counter, `times` times, by compare-and-set."""
    for _ in range(times):
        while not _added_one(store):
            pass


def _added_one(store: ObjectStore) -> bool:
    found = store.find("sub/counter")
    value, etag = b"0", None
    if found is not None:
        value, info = store.read_with_info("sub/counter")
        etag = info.etag
    try:
        store.compare_and_set("sub/counter", b"%d" % (int(value) + 1), etag=etag)
    except Conflict:
        return False
    return True


def claim(store: ObjectStore, names: int) -> None:
    """Claim each name and delete a neighbour, so that folders are created and removed meanwhile."""
    for number in range(names):
        store.put(f"claims/{number}/passing", b"")
        if store.put_if_absent(f"won/{number}", b""):
            print(number)  # noqa: T201 - read by the test
        store.delete([f"claims/{number}/passing"])


def rewrite_for_ever(store: ObjectStore, size: int) -> None:
    """Rewrite one file with whole bodies of one letter each, until killed."""
    for number in count():
        store.put("torn/file", bytes([65 + number % 26]) * size)
        print(number, flush=True)  # noqa: T201 - read by the test


def publish_for_ever(store: ObjectStore, size: int) -> None:
    """Publish a unit repeatedly, each time with another letter and another set of files."""
    for number in count():
        letter = bytes([65 + number % 26])
        files = {f"unit/{name}": letter * size for name in range(3 + number % 3)}
        publish(store, files, marker="marker", marker_body=letter, replaces=["unit"])
        print(number, flush=True)  # noqa: T201 - read by the test


def put_and_tell(store: ObjectStore, size: int) -> None:
    """Put one body and print the error, if any."""
    try:
        store.put("a/file", b"x" * size)
    except NewsPlatformError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201 - read by the test


if __name__ == "__main__":
    programs = (count_up, claim, rewrite_for_ever, publish_for_ever, put_and_tell)
    by_name = {program.__name__: program for program in programs}
    by_name[sys.argv[1]](open_store(sys.argv[2]), int(sys.argv[3]))
