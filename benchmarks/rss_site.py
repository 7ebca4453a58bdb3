"""A small asyncio web server in its own process, so that it does not slow down the measurement."""

import asyncio
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

HOSTS = 500


@dataclass(frozen=True, slots=True)
class Site:
    """Pages by path; any other path gives 304, like an unchanged feed."""

    pages: Mapping[str, bytes] = field(default_factory=dict)


@contextmanager
def serve(site: Site) -> Iterator[tuple[dict[str, tuple[str, int]], int]]:
    """Serve the site for 500 hosts; yield the host map and the port."""
    command = [sys.executable, "-m", "benchmarks.rss_site"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        pickle.dump(dict(site.pages), process.stdin)
        process.stdin.flush()
        port = int(process.stdout.readline())
        yield {f"h{n}.example": ("127.0.0.1", port) for n in range(HOSTS)}, port
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def _application(pages: Mapping[str, bytes]) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(status=404)
        body = pages.get(request.path)
        if body is None:
            return web.Response(status=304)
        return web.Response(body=body, content_type="text/html")

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    return application


async def _serve_until_killed(pages: Mapping[str, bytes]) -> None:
    runner = web.AppRunner(_application(pages), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve_until_killed(pickle.load(sys.stdin.buffer)))
