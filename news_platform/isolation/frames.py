"""The messages between a pool and its workers: frames of a kind byte, a length and the payload.

Requests go to the worker's stdin, answers come from its original stdout.
"""

import os
import struct

HEADER = struct.Struct("<cQ")

START = b"S"  # environment variables and log options, sent once before the target's import
CONTEXT = b"C"  # what the log lines of the following items are about
REQUEST = b"Q"  # an item for the target
READY = b"R"  # the target is imported; items may be sent
UNUSABLE = b"U"  # the target cannot be imported
REPORT = b"P"  # a progress value from the target
DONE = b"D"  # the value the target returned
ERROR = b"E"  # the exception the target raised, as text
MEMORY = b"M"  # an allocation failed; the worker exits


def write_frame(fd: int, kind: bytes, payload: bytes) -> None:
    """Write one frame to a blocking descriptor."""
    parts = [memoryview(HEADER.pack(kind, len(payload))), memoryview(payload)]
    while parts:
        parts = unwritten(parts, os.writev(fd, parts))


def unwritten(parts: list[memoryview], count: int) -> list[memoryview]:
    """Return the rest of the parts after `count` bytes; a pipe may accept only a part."""
    left = []
    for part in parts:
        if count < len(part):
            left.append(part[count:])
        count = max(0, count - len(part))
    return left


class FrameBuffer:
    """Collect bytes as they arrive and return them as whole frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Append the next bytes of the stream."""
        self._bytes += data

    def pop(self) -> tuple[bytes, bytes] | None:
        """Return the next whole frame as (kind, payload), or None if it is incomplete."""
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
