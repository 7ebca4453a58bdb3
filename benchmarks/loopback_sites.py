"""Thousands of small sites on one loopback port, as a program of its own: its CPU is not ours.

It prints its port, and for `GET /most` the most requests that any host had at once. A host named
`hang-…`, `reset-…` and so on misbehaves as its name says.
"""

import asyncio
from collections import Counter
from typing import ClassVar

ROBOTS = b"""User-agent: *
Disallow: /admin/
Disallow: /search
Crawl-delay: 0

User-agent: GPTBot
Disallow: /

Sitemap: https://HOST/sitemap.xml
"""
_ENTRY = b"<url><loc>https://HOST/story-%d</loc><lastmod>2025-11-01</lastmod></url>"
SITEMAP = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    + b"\n".join(_ENTRY % number for number in range(20))
    + b"\n</urlset>\n"
)
# The head of a small home page; a survey reads its elements.
HOME = (
    b"<!DOCTYPE html><html><head><title>News</title>"
    b'<meta name="robots" content="max-snippet:-1"><link rel="canonical" href="https://HOST/">'
    b"</head><body>" + b'<a href="/story">Story</a>\n' * 40 + b"</body></html>"
)
FILES = {b"/robots.txt": ROBOTS, b"/sitemap.xml": SITEMAP, b"/": HOME}
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nNot Found"


def _ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


# Answers to every path, by the kind of host.
BAD_ANSWERS = {
    "garbage": b"\x00\xff\xfe not http at all\r\n\r\n" * 50,
    "loop": b"HTTP/1.1 302 Found\r\nLocation: /robots.txt\r\nContent-Length: 0\r\n\r\n",
    "error": b"HTTP/1.1 503 Down\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n",
    "huge": _ok(b"Disallow: /" + b"x" * 2_000_000),
    "short": b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nUser-agent: *\n",
    "bomb": _ok(b'<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">]><urlset>' + b"<a>" * 100_000),
}
HOSTILE = ("hang", "reset", "late", *BAD_ANSWERS)


class Site(asyncio.Protocol):
    """One connection; requests come one after the other."""

    open: ClassVar[Counter[bytes]] = Counter()
    most = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.host = b""

    def data_received(self, data: bytes) -> None:
        """Answer a little later, so that requests of one host overlap where they may."""
        path = data.split(b" ", 2)[1]
        self.host = data.partition(b"\r\nHost: ")[2].partition(b"\r\n")[0]
        Site.open[self.host] += 1
        Site.most = max(Site.most, Site.open[self.host])
        kind = self.host.partition(b"-")[0].decode()
        answer = self.misbehave if kind in HOSTILE else self.answer
        asyncio.get_running_loop().call_later(0.002, answer, path)

    def misbehave(self, path: bytes) -> None:
        """Do what the name of the host says."""
        Site.open[self.host] -= 1
        kind = self.host.partition(b"-")[0].decode()
        if kind == "reset":
            self.transport.abort()
        elif kind == "late" and path == b"/robots.txt":
            self.transport.write(_ok(ROBOTS.replace(b"HOST", self.host)))
        elif kind in BAD_ANSWERS:
            self.transport.write(BAD_ANSWERS[kind])
        # `hang` never answers, `late` only for robots.txt.

    def connection_lost(self, error: Exception | None) -> None:
        """Count the requests of a client that went away as ended."""
        Site.open.pop(self.host, None)

    def answer(self, path: bytes) -> None:
        """Answer with the site's file, or that there is none."""
        Site.open[self.host] -= 1
        body = b"%d" % Site.most if path == b"/most" else FILES.get(path)
        if body is None:
            self.transport.write(MISSING)
            return
        self.transport.write(_ok(body.replace(b"HOST", self.host)))


async def main() -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Site, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
