"""Frames through a real pipe, whole and in pieces."""

import os
import threading

import pytest

from news_platform.isolation import frames
from news_platform.isolation.frames import FrameBuffer, unwritten, write_frame


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as pipe:
        return pipe.read()


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 3_000_000])
def test_a_frame_larger_than_the_pipe_arrives_whole(size: int) -> None:
    reader, writer = os.pipe()
    payload = os.urandom(size)
    received: list[bytes] = []
    thread = threading.Thread(target=lambda: received.append(_read_all(reader)))
    thread.start()
    write_frame(writer, frames.DONE, payload)
    os.close(writer)
    thread.join()
    buffer = FrameBuffer()
    buffer.feed(received[0])
    assert buffer.pop() == (frames.DONE, payload)
    assert buffer.pop() is None


def test_frames_are_handed_out_only_when_complete_and_in_order() -> None:
    stream = b"".join(
        frames.HEADER.pack(kind, len(payload)) + payload
        for kind, payload in ((frames.REPORT, b"one"), (frames.REPORT, b""), (frames.DONE, b"two"))
    )
    buffer = FrameBuffer()
    found = []
    for byte in stream:
        buffer.feed(bytes([byte]))
        while (frame := buffer.pop()) is not None:
            found.append(frame)
    assert found == [(frames.REPORT, b"one"), (frames.REPORT, b""), (frames.DONE, b"two")]


@pytest.mark.parametrize(
    ("count", "left"),
    [(0, [b"ab", b"cde"]), (1, [b"b", b"cde"]), (2, [b"cde"]), (4, [b"e"]), (5, [])],
)
def test_what_a_pipe_did_not_take_is_left(count: int, left: list[bytes]) -> None:
    parts = [memoryview(b"ab"), memoryview(b"cde")]
    assert [bytes(part) for part in unwritten(parts, count)] == left
