"""Requests per second of the explorer's article page, beside a bare Starlette app in the same run.

The articles are recombined sentences in twelve languages. Server and client are two processes on
the same machine; besides the rate it shows the server's CPU time per request, which other work on
the machine changes little. A page is made once per version of the data and kept for a minute:
pages that are asked for again are measured apart from those asked for the first time.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path

import psutil

from benchmarks import RESULTS_FOLDER
from news_platform.search.pipeline import build_day
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.search.articles import SENTENCES
from news_platform_tests.servers.dagster_ui import free_port

RESULTS = RESULTS_FOLDER / "server.json"
DAYS = 5
ARTICLES_PER_DAY = 2_000
PAGES = 400
# So few that none is older than the server keeps it, also on a busy machine.
KEPT_PAGES = 100
CONNECTIONS = 16
SECONDS = 8.0
WANTED_RATE = 300
_BARE = "benchmarks.server:bare_app"


@dataclass(frozen=True, slots=True)
class Rate:
    """What one run of requests took."""

    what: str
    requests: int
    per_second: float
    cpu_ms_per_request: float
    p95_ms: float


def main() -> None:
    """Print the rates, and store them as JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        paths = _write_root(open_store(str(root)), Path(scratch))
        environ = {"NEWS_PLATFORM_SERVER_RATE": "0", "NEWS_PLATFORM_ROOT": str(root)}
        environ["NEWS_PLATFORM_SEARCH_CACHE"] = str(Path(scratch) / "cache")
        rates = [*_bare_rates(paths), *_explorer_rates(paths, environ)]
    bare = next(rate for rate in rates if rate.what == "bare Starlette, the same bytes")
    for rate in rates:
        share = bare.cpu_ms_per_request / rate.cpu_ms_per_request
        print(
            f"{rate.what:<34}{rate.per_second:>8.0f}/s {rate.cpu_ms_per_request:>7.2f} ms CPU "
            f"{rate.p95_ms:>7.1f} ms p95  {share:>6.3f} of bare"
        )
    print(f"asked: at least {WANTED_RATE}/s for the article page on 2 cores")
    RESULTS.write_text(json.dumps([asdict(rate) for rate in rates], indent=1) + "\n")


def _bare_rates(paths: Sequence[str]) -> Iterator[Rate]:
    command = [sys.executable, "-m", "uvicorn", _BARE, "--factory", "--log-level", "warning"]
    with _running(command, {}, ready="/") as (port, process):
        yield _measured("bare Starlette, the same bytes", port, process, paths, SECONDS)


def _explorer_rates(paths: Sequence[str], environ: Mapping[str, str]) -> Iterator[Rate]:
    command = [sys.executable, "-m", "news_platform.cli", "serve"]
    with _running(command, environ, ready="/explain?q=a.example") as (port, process):
        again, new = paths[:KEPT_PAGES], paths[KEPT_PAGES:]
        _measured("loaded into the cache", port, process, again, None)
        yield _measured("article page", port, process, again, SECONDS)
        yield _measured("article page, first time", port, process, new, None)
        etag = asyncio.run(_etag(port, paths[0]))
        header = f"If-None-Match: {etag}\r\n"
        yield _measured("article page, unchanged (304)", port, process, paths[:1], SECONDS, header)
        words = [f"/api/v1/search?q=bridge+OR+w{number}" for number in range(PAGES)]
        yield _measured("search (API), first time", port, process, words[:200], None)


@contextmanager
def _running(
    command: Sequence[str], environ: Mapping[str, str], *, ready: str
) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        env={**os.environ, **environ},
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                asyncio.run(_get(port, ready))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        time.sleep(12 if environ else 0)  # the explorer warms up by itself
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _measured(
    what: str,
    port: int,
    process: psutil.Process,
    paths: Sequence[str],
    seconds: float | None,
    headers: str = "",
) -> Rate:
    """Request all paths once, or in turns for some seconds."""
    before, started = process.cpu_times(), time.monotonic()
    todo: Iterator[str] = iter(paths) if seconds is None else cycle(paths)
    times = asyncio.run(_load(port, todo, seconds, headers))
    took, after = time.monotonic() - started, process.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    times.sort()
    return Rate(
        what,
        len(times),
        round(len(times) / took, 1),
        round(cpu * 1000 / len(times), 3),
        round(times[int(len(times) * 0.95)] * 1000, 1),
    )


async def _load(
    port: int, paths: Iterator[str], seconds: float | None, headers: str
) -> list[float]:
    until = time.monotonic() + seconds if seconds is not None else float("inf")
    times: list[float] = []

    async def use() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in paths:
            started = time.monotonic()
            if started > until:
                break
            await _ask(reader, writer, path, headers)
            times.append(time.monotonic() - started)
        writer.close()

    await asyncio.gather(*(use() for _ in range(CONNECTIONS)))
    return times


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, headers: str = ""
) -> tuple[bytes, bytes]:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")):
        raise AssertionError(head.decode())
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    size = int(length[0].partition(b":")[2]) if length and b" 304 " not in head[:20] else 0
    return head, await reader.readexactly(size)


async def _get(port: int, path: str) -> tuple[bytes, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = await _ask(reader, writer, path)
    writer.close()
    return answer


async def _etag(port: int, path: str) -> str:
    head, _ = await _get(port, path)
    return head.decode().partition("etag: ")[2].partition("\r\n")[0]


def bare_app() -> object:
    """Return an app that answers every path with a page of the usual size."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    body = b"x" * 12_000

    async def page(_request: Request) -> Response:
        return Response(body, media_type="text/html; charset=utf-8")

    return Starlette(routes=[Route("/{rest:path}", page)])


def _write_root(store: ObjectStore, scratch: Path) -> list[str]:
    """Write days of articles made of shuffled sentences; return the paths of some pages."""
    claim_root(store, sample=False)
    dice = random.Random(1)
    sentences = [text for line in SENTENCES.values() for text in line.split(". ")]
    paths = []
    for number in range(DAYS):
        moment = datetime(2025, 11, 1, 12, tzinfo=UTC) + timedelta(days=number)
        day = moment.date().isoformat()
        rows = [
            article(
                f"https://site{place % 50}.example/{day}/{place}",
                "\n".join(". ".join(dice.choices(sentences, k=6)) for _ in range(12)),
                fetched_at=moment,
                published_at=moment,
                warc=f"CC-NEWS-{moment:%Y%m%d%H%M%S}-00001.warc.gz",
                record_offset=place * 1000,
                record_length=1000,
            )
            for place in range(ARTICLES_PER_DAY)
        ]
        store_articles(store, day, rows, scratch)
        build_day(store, day, now=moment)
        chosen = dice.sample(rows, PAGES // DAYS)
        paths += [f"/articles/{row['url_hash']}?day={day}" for row in chosen]
    dice.shuffle(paths)
    return paths


if __name__ == "__main__":
    main()
