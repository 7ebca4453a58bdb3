"""A real HTTP server on loopback whose answers, good or hostile, are plain functions."""

import asyncio
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Site:
    """What the server saw: requests as (host, path), and how many at once a host had."""

    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    open: Counter[str] = field(default_factory=Counter)
    most_open: Counter[str] = field(default_factory=Counter)


@asynccontextmanager
async def serve(
    answers: Mapping[str, Answer], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    """Serve answers by path (or `host/path`) until the block ends; a path unlisted is a 404."""
    site = Site()
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await _one(site, answers, reader, writer):
                    pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()
            talks.discard(task)

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in tuple(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await asyncio.sleep(0)  # let the transports close


@contextmanager
def serve_in_thread(answers: Mapping[str, Answer]) -> Iterator[Site]:
    """Serve from a thread of its own, for tests that have no event loop or start programs."""
    started: Future[Site] = Future()
    stop: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def go() -> None:
        leave = asyncio.Event()
        stop.set_result((asyncio.get_running_loop(), leave))
        async with serve(answers) as site:
            started.set_result(site)
            await leave.wait()

    thread = threading.Thread(target=asyncio.run, args=(go(),), daemon=True)
    thread.start()
    try:
        yield started.result(timeout=10)
    finally:
        loop, leave = stop.result(timeout=10)
        loop.call_soon_threadsafe(leave.set)
        thread.join(timeout=10)


async def _one(
    site: Site,
    answers: Mapping[str, Answer],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    path = head[0].split(" ")[1]
    headers = {
        k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)
    }
    host = headers["host"].partition(":")[0]
    site.requests.append((host, path))
    site.headers.append(headers)
    site.open[host] += 1
    site.most_open[host] = max(site.most_open[host], site.open[host])
    try:
        await (answers.get(f"{host}{path}") or answers.get(path) or status(404))(writer)
        await writer.drain()
    finally:
        site.open[host] -= 1
    return not writer.is_closing()


def body(content: bytes, **headers: str) -> Answer:
    """Answer 200 with this body."""
    return status(200, content, **headers)


def status(code: int, content: bytes = b"", **headers: str) -> Answer:
    """Answer with a status, a body and headers (`Content_Type` becomes `Content-Type`)."""
    lines = [f"HTTP/1.1 {code} x", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content)


def raw(answer: bytes) -> Answer:
    """Answer with exactly these bytes."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return write


def closing(answer: bytes) -> Answer:
    """Answer with these bytes and hang up."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    return write


def redirect(to: str, code: int = 302) -> Answer:
    """Answer with a redirect."""
    return status(code, Location=to)


def dripping(every_seconds: float) -> Answer:
    """Answer like a slow loris: a byte now and then, for ever."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 x\r\nContent-Length: 1000000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"#")
            await writer.drain()
            await asyncio.sleep(every_seconds)

    return write


def endless(chunk: bytes = b"#" * 65_536, head: bytes = b"") -> Answer:
    """Answer with a body that never ends."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(head or b"HTTP/1.1 200 x\r\nConnection: close\r\n\r\n")
        while not writer.is_closing():
            writer.write(chunk)
            await writer.drain()

    return write


def after(seconds: float, answer: Answer) -> Answer:
    """Give an answer late."""

    async def write(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await answer(writer)

    return write
