"""Files built off the path and put in the background."""

from pathlib import Path

import pytest

from news_platform.domain_store.data_files import SPOOL_BYTES, open_uploads
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectInfo, ObjectStore


class Refusing(ObjectStore):
    """A store that refuses some paths."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store._backend, store._prefix)

    def put(self, path: str, body: object) -> ObjectInfo:
        if path.startswith("bad"):
            raise StorageError(f"cannot write {path!r}", thing=path)
        return super().put(path, body)  # type: ignore[arg-type] # passed on


@pytest.mark.parametrize("size", [0, SPOOL_BYTES + 1])
def test_a_spool_of_any_size_arrives_whole(root: ObjectStore, size: int) -> None:
    with open_uploads(root, 2) as uploads:
        spool = uploads.new_spool()
        spool.write(b"x" * size)
        uploads.put("spooled", spool)
    assert root.head("spooled").size_bytes == size
    assert spool.closed


def test_a_failure_is_raised_at_the_latest_at_the_end(root: ObjectStore) -> None:
    with pytest.raises(StorageError, match="bad"), open_uploads(Refusing(root), 2) as uploads:
        uploads.put("bad/1", b"x")


def test_spools_that_were_never_put_are_closed(root: ObjectStore, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), open_uploads(root, 1) as uploads:
        spool = uploads.new_spool(str(tmp_path))
        spool.write(b"x" * (SPOOL_BYTES + 1))
        raise RuntimeError
    assert spool.closed
    assert list(tmp_path.iterdir()) == []
