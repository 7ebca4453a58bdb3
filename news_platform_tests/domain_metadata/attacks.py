"""Generate hostile sitemaps; run as a program, measure what parsing each one costs."""

import gzip
import json
import resource
import time
from collections.abc import Callable

from news_platform.domain_metadata.sitemaps import parse_sitemap

MIB = 1024 * 1024
HEAD = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def gzip_of(piece: bytes, size_bytes: int, head: bytes = HEAD) -> bytes:
    """Return gzip members that inflate to a head followed by many copies of one piece."""
    block = piece * (MIB // len(piece))
    return gzip.compress(head) + gzip.compress(block, 9) * (size_bytes // len(block))


def _entities() -> bytes:
    names = [f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10)]
    dtd = f'<!DOCTYPE x [<!ENTITY e0 "lol">{"".join(names)}]>'
    return dtd.encode() + HEAD + b"<url><loc>&e9;</loc></url></urlset>"


ATTACKS: dict[str, Callable[[], bytes]] = {
    "a gigabyte of spaces": lambda: gzip_of(b" ", 1024 * MIB),
    "a gigabyte of zeros": lambda: gzip_of(b"\0", 1024 * MIB),
    "a gigabyte of entries": lambda: gzip_of(
        b"<url><loc>https://a.test/</loc></url>\n", 1024 * MIB
    ),
    "empty elements": lambda: gzip_of(b"<a/>", 256 * MIB),
    "elements in one entry": lambda: gzip_of(b"<a/>", 256 * MIB, HEAD + b"<url>"),
    "nesting": lambda: HEAD + b"<url>" * 300_000,
    "nesting by other names": lambda: gzip_of(b"<a>", 60 * MIB),
    "attributes": lambda: (
        HEAD + b"<url " + b" ".join(b'a%d="x"' % n for n in range(100_000)) + b">"
    ),
    "one attribute": lambda: gzip_of(b"x", 256 * MIB, HEAD + b'<url a="'),
    "namespaces": lambda: (
        HEAD + b"<u " + b" ".join(b'xmlns:a%d="x"' % n for n in range(50_000)) + b">"
    ),
    "ampersands": lambda: gzip_of(b"&", 256 * MIB),
    "a comment": lambda: gzip_of(b"x", 256 * MIB, b"<!--"),
    "a doctype behind a comment": lambda: b"<!--" + b"x" * 100_000 + b"-->" + _entities(),
    "entities": _entities,
    "an external entity": lambda: (
        b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
        + HEAD
        + b"<url><loc>&a;</loc></url>"
    ),
    "gzip in gzip in gzip": lambda: gzip.compress(gzip.compress(gzip_of(b" ", 64 * MIB))),
    "lines of text": lambda: gzip_of(b"x\n", 256 * MIB, b"x\n"),
    "one line of text": lambda: gzip_of(b"x", 256 * MIB, b"x"),
    "HTML": lambda: b"<!doctype html><html>" + b"<div>" * 20_000,
}


def main() -> None:
    """Print the seconds and the memory growth of each attack as JSON."""
    costs: dict[str, tuple[float, float, int]] = {}
    for name, make in ATTACKS.items():
        body = make()
        before, started = _peak_mib(), time.process_time()
        found = parse_sitemap(body, "https://a.test/sitemap.xml")
        costs[name] = (time.process_time() - started, _peak_mib() - before, len(found.urls))
    print(json.dumps(costs))  # noqa: T201  # the program's answer


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
