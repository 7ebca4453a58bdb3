"""A store that counts what is read from it."""

from collections.abc import Iterator

from news_platform.storage.objects.store import ByteStream, ObjectInfo, ObjectStore


class Counted(ObjectStore):
    """An object store that counts requests for bytes and listings."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store._backend, store._prefix)
        self.gets: list[str] = []
        self.lists: list[str] = []

    def list(self, prefix: str = "", *, name_prefix: str = "") -> Iterator[ObjectInfo]:
        self.lists.append(prefix)
        return super().list(prefix, name_prefix=name_prefix)

    def read_with_info(self, path: str) -> tuple[bytes, ObjectInfo]:
        self.gets.append(path)
        return super().read_with_info(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.gets.append(path)
        return super().read_range(path, start, length)

    def stream(self, path: str, *, start: int = 0, expected_size: int | None = None) -> ByteStream:
        self.gets.append(path)
        return super().stream(path, start=start, expected_size=expected_size)
