"""A raw web server in its own process: feeds, unchanged feeds, and feeds that want to hurt."""

import asyncio
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

HOSTS = 500
_NEWEST = datetime(2025, 11, 3, 11, tzinfo=UTC)
_PARAGRAPH = "<p>The council talked about the river and its bridges for the whole evening.</p>"
_BOMB = zlib.compress(b"<rss>" + b" " * 200_000_000, 9)


@contextmanager
def serve() -> Iterator[dict[str, tuple[str, int]]]:
    """Serve 500 hosts until the block ends; yield the host map."""
    command = [sys.executable, "-m", "benchmarks.newsroom_site"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        yield {f"h{n}.example": ("127.0.0.1", port) for n in range(HOSTS)}
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _feed_of(number: str) -> bytes:
    items = "".join(
        f"<item><title>Item {n} of {number}</title><link>https://h.example/{number}/{n}</link>"
        f"<guid>{number}-{n}</guid><description>About item {n} of feed {number}.</description>"
        f"<content:encoded><![CDATA[{_PARAGRAPH * 12}]]></content:encoded>"
        f"<pubDate>{format_datetime(_NEWEST - timedelta(hours=n))}</pubDate></item>"
        for n in range(20)
    )
    return (
        '<?xml version="1.0"?><rss version="2.0" '
        'xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>'
        f"<title>Feed {number}</title><language>en</language>{items}</channel></rss>"
    ).encode()


# Filled in for each feed, so that the server takes little of the two cores.
_NUMBER = "@number@"
_FEED = _feed_of(_NUMBER)


def _answer(kind: str, number: str) -> bytes:
    if kind == "same":
        return b"HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n"
    if kind == "garbage":
        return b"HTTP/1.1 200 \xff\xfe\r\n\xff: \x00\r\nRetry-After: \xb2\r\n: :\r\n\r\n<rss"
    encoding = ""
    body = _FEED.replace(_NUMBER.encode(), number.encode())
    if kind == "bomb":
        body, encoding = _BOMB, "Content-Encoding: deflate\r\n"
    head = f"Content-Type: application/rss+xml\r\n{encoding}Content-Length: {len(body)}\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\n" + head.encode() + body


async def _handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while request := await reader.readuntil(b"\r\n\r\n"):
            path = request.split(b" ", 2)[1].decode()
            _, kind, number = path.split("/")
            if kind == "hang":
                await asyncio.sleep(3600)
            writer.write(_answer(kind, number))
            await writer.drain()
            if kind == "garbage":
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


async def _serve_until_killed() -> None:
    server = await asyncio.start_server(_handle, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve_until_killed())
