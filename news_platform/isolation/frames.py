"""How a pool and its worker talk: frames of one kind byte, a length and that many bytes.

Requests go down the worker's stdin and are bare frames; answers come up what was its stdout.
"""

import os
import struct

HEADER = struct.Struct("<cQ")

REQUEST = b"Q"  # an item to work on
READY = b"R"  # the target is imported, send items
UNUSABLE = b"U"  # the target cannot be imported
REPORT = b"P"  # where the target is
DONE = b"D"  # what the target returned
ERROR = b"E"  # what the target raised, as text
MEMORY = b"M"  # an allocation failed; the worker ends itself


def write_frame(fd: int, kind: bytes, payload: bytes) -> None:
    """Write one frame to a blocking descriptor."""
    parts = [memoryview(HEADER.pack(kind, len(payload))), memoryview(payload)]
    while parts:
        parts = unwritten(parts, os.writev(fd, parts))


def unwritten(parts: list[memoryview], count: int) -> list[memoryview]:
    """Return what is left of the parts after `count` bytes; a pipe takes what it has room for."""
    left = []
    for part in parts:
        if count < len(part):
            left.append(part[count:])
        count = max(0, count - len(part))
    return left


class FrameBuffer:
    """Bytes as they arrive, handed out again as whole frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._bytes += data

    def pop(self) -> tuple[bytes, bytes] | None:
        """Return the next whole frame as (kind, payload), or None while it is incomplete."""
        if len(self._bytes) < HEADER.size:
            return None
        kind, length = HEADER.unpack_from(self._bytes)
        end = HEADER.size + length
        if len(self._bytes) < end:
            return None
        with memoryview(self._bytes) as view:
            payload = bytes(view[HEADER.size : end])
        del self._bytes[:end]
        return kind, payload
