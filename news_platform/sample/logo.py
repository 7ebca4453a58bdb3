"""A small chequered picture, so that the crawl also meets something that is not a page."""

import zlib

_DARK, _LIGHT = b"\x1f\x3a\x5f", b"\xe8\xb0\x4a"
_SIDE = 16


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return len(content).to_bytes(4, "big") + kind + content + check.to_bytes(4, "big")


def _rows() -> bytes:
    lines = (
        b"\0" + b"".join(_DARK if (x // 4 + y // 4) % 2 else _LIGHT for x in range(_SIDE))
        for y in range(_SIDE)
    )
    return b"".join(lines)


# Level 0 stores without compressing: the same bytes from every zlib.
LOGO = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", _SIDE.to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00")
    + _chunk(b"IDAT", zlib.compress(_rows(), 0))
    + _chunk(b"IEND", b"")
)
