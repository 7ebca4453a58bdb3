"""All spellings of a page that count as the page itself, as docs/takedown.md lists them.

`spellings` is what tests of takedowns, and attacks on them, draw addresses from.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

Rewrite = Callable[[str, str], str]
"""From the host and the path of a page, which begins with a slash, to an address."""

# By the words of the table in docs/takedown.md; a test compares the two.
SPELLINGS: Mapping[str, tuple[Rewrite, ...]] = {
    "scheme": (
        lambda host, path: f"http://{host}{path}",
        lambda host, path: f"HTTPS://{host}{path}",
        lambda host, path: f"//{host}{path}",
        lambda host, path: f"{host}{path}",
        lambda host, path: f"https:\\\\{host}{path}",
    ),
    "login": (
        lambda host, path: f"https://u@{host}{path}",
        lambda host, path: f"https://u:secret@{host}{path}",
        lambda host, path: f"https://u%40x:@{host}{path}",
        lambda host, path: f"https://other.example@{host}{path}",
    ),
    "host": (
        lambda host, path: f"https://{host.upper()}{path}",
        lambda host, path: f"https://{host}.{path}",
        lambda host, path: f"https://{host}:443{path}",
        lambda host, path: f"http://{host}:80{path}",
        lambda host, path: f"https://%{ord(host[0]):x}{host[1:]}{path}",
    ),
    "`www.`, `m.`, `mobile.`, `amp.`": tuple(
        lambda host, path, more=more: f"https://{more}{host}{path}"  # type: ignore[misc]
        for more in ("www.", "m.", "mobile.", "amp.", "www.m.", "m.www.", "WWW.", "M.")
    ),
    "slashes and dots": (
        lambda host, path: f"https://{host}{path}/",
        lambda host, path: f"https://{host}/{path}",
        lambda host, path: f"https://{host}/x/..{path}",
        lambda host, path: f"https://{host}/.{path}",
        lambda host, path: f"https://{host}" + path.replace("/", "\\"),
    ),
    "escapes": (
        lambda host, path: f"https://{host}{path[:-1]}%{ord(path[-1]):x}",
        lambda host, path: f"https://{host}{path[:-1]}%{ord(path[-1]):X}",
        lambda host, path: f"https://{host}/%{ord(path[1]):02x}{path[2:]}",
    ),
    "blanks and line breaks": (
        lambda host, path: f"  https://{host}{path}\n",
        lambda host, path: f"https://{host}{path[:3]}\n{path[3:]}",
        lambda host, path: f"<https://{host}{path}>",
    ),
    "fragment": (
        lambda host, path: f"https://{host}{path}#top",
        lambda host, path: f"https://{host}{path}#",
        lambda host, path: f"https://{host}{path}#:~:text=x",
    ),
    "trackers": (
        lambda host, path: f"https://{host}{path}?utm_source=rss",
        lambda host, path: f"https://{host}{path}?fbclid=1&amp;gclid=2",
        lambda host, path: f"https://{host}{path}?UTM_Medium=x&ref={host}",
        lambda host, path: f"https://{host}{path}?",
    ),
    "AMP pages": (
        lambda host, path: f"https://{host}{path}/amp",
        lambda host, path: f"https://{host}{path}/amp/",
        lambda host, path: f"https://{host}/amp{path}",
        lambda host, path: f"https://{host}{path}.amp",
        lambda host, path: f"https://{host}{path}/amp.html",
        lambda host, path: f"https://{host}{path}?amp",
        lambda host, path: f"https://{host}{path}?amp=1",
        lambda host, path: f"https://{host}{path}?outputType=amp",
        lambda host, path: f"https://{host}{path}?output=amp",
    ),
    "AMP caches": (
        lambda host, path: f"https://{host.replace('.', '-')}.cdn.ampproject.org/c/s/{host}{path}",
        lambda host, path: f"https://x.cdn.ampproject.org/v/s/www.{host}{path}?amp=1",
        lambda host, path: f"https://www.google.com/amp/s/{host}{path}",
        lambda host, path: f"https://www.google.co.uk/amp/s/amp.{host}{path}/amp",
        lambda host, path: f"https://www.bing-amp.com/c/s/{host}{path}",
    ),
}


def spellings(host: str, path: str) -> Iterator[str]:
    """Yield every spelling of a page; `path` has no query and does not end with a slash."""
    for rewrite in itertools.chain.from_iterable(SPELLINGS.values()):
        yield rewrite(host, path)


def drawn_spellings(host: str, path: str, *, seed: int) -> Iterator[str]:
    """Yield spellings without end, most of them mixed from two or three kinds."""
    draw = random.Random(seed)
    hosts, ends = ("", "www.", "m.", "amp.", "u:p@", "U@www."), ("", "/", "/amp", "#x", "?utm_id=1")
    while True:
        scheme = draw.choice(("http://", "https://", "HTTPS://"))
        escaped = "".join(
            quote(one) if one == "/" or draw.random() < 0.8 else f"%{ord(one):02x}" for one in path
        )
        mixed = f"{scheme}{draw.choice(hosts)}{host}{escaped}{draw.choice(ends)}"
        yield draw.choice((mixed, mixed, draw.choice(list(spellings(host, path)))))
