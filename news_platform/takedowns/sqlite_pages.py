"""Pure: the space of a SQLite file that no row uses, where deleted content may remain.

See https://www.sqlite.org/fileformat2.html: pages on the free list, and in pages of b-trees the
gap between pointers and cells and the blocks that deleted cells left.
"""

from collections.abc import Iterator

_HEADER_BYTES = 100
_LEAVES = (0x0A, 0x0D)
_INNER = (0x02, 0x05)


def iter_free_space(file: bytes) -> Iterator[bytes]:
    """Yield the unused bytes of a database, piece by piece."""
    size = int.from_bytes(file[16:18], "big")
    size = 65_536 if size == 1 else size
    if size < 512:
        return
    free = set(_iter_free_pages(file, size))
    for number in range(1, len(file) // size + 1):
        page = file[(number - 1) * size : number * size]
        if number in free:
            yield page
        else:
            yield from _iter_gaps(page, _HEADER_BYTES if number == 1 else 0)


def _iter_free_pages(file: bytes, size: int) -> Iterator[int]:
    trunk, seen = int.from_bytes(file[32:36], "big"), set[int]()
    while trunk and trunk not in seen and trunk * size <= len(file):
        seen.add(trunk)
        page = file[(trunk - 1) * size : trunk * size]
        count = min(int.from_bytes(page[4:8], "big"), size // 4 - 2)
        # The trunk itself holds numbers first; what follows them is unused.
        yield from (_number(page, 8 + 4 * place) for place in range(count))
        trunk = _number(page, 0)
    yield from seen


def _number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 4], "big")


def _iter_gaps(page: bytes, start: int) -> Iterator[bytes]:
    kind = page[start] if len(page) > start else 0
    if kind not in (*_LEAVES, *_INNER):
        return  # an overflow page, which belongs to a row
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    content = int.from_bytes(page[start + 5 : start + 7], "big") or 65_536
    pointers = start + (8 if kind in _LEAVES else 12)
    yield page[pointers + 2 * cells : content]
    block, seen = int.from_bytes(page[start + 1 : start + 3], "big"), set[int]()
    while block and block not in seen and block + 4 <= len(page):
        seen.add(block)
        length = int.from_bytes(page[block + 2 : block + 4], "big")
        yield page[block + 4 : block + length]
        block = int.from_bytes(page[block : block + 2], "big")
