"""All spellings of a page that count as the page itself, as docs/takedown.md lists them.

`spellings` is what tests of takedowns, and attacks on them, draw addresses from.
"""

import random
from collections.abc import Iterator, Mapping
from urllib.parse import quote

# By the words of the table in docs/takedown.md; a test compares the two. {h} is the host, {p} the
# path, which begins with a slash; `_parts` has the others.
SPELLINGS: Mapping[str, str] = {
    "scheme": r"http://{h}{p} HTTPS://{h}{p} //{h}{p} {h}{p} https:\\{h}{p}",
    "login": "https://u@{h}{p} https://u:secret@{h}{p} https://u%40x:@{h}{p} "
    "https://other.example@{h}{p}",
    "host": "https://{H}{p} https://{h}.{p} https://{h}:443{p} http://{h}:80{p} https://{escaped}{p}",
    "`www.`, `m.`, `mobile.`, `amp.`": "https://www.{h}{p} https://m.{h}{p} https://mobile.{h}{p} "
    "https://amp.{h}{p} https://www.m.{h}{p} https://m.www.{h}{p} https://WWW.{h}{p} "
    "https://M.{h}{p}",
    "slashes and dots": "https://{h}{p}/ https://{h}/{p} https://{h}/x/..{p} https://{h}/.{p} "
    "https://{h}{back}",
    "escapes": "https://{h}{last} https://{h}{Last} https://{h}{first}",
    "blanks and line breaks": "{blank}{blank}https://{h}{p}{line} https://{h}{broken} <https://{h}{p}>",
    "fragment": "https://{h}{p}#top https://{h}{p}# https://{h}{p}#:~:text=x",
    "trackers": "https://{h}{p}?utm_source=rss https://{h}{p}?fbclid=1&amp;gclid=2 "
    "https://{h}{p}?UTM_Medium=x&ref={h} https://{h}{p}?",
    "AMP pages": "https://{h}{p}/amp https://{h}{p}/amp/ https://{h}/amp{p} https://{h}{p}.amp "
    "https://{h}{p}/amp.html https://{h}{p}?amp https://{h}{p}?amp=1 "
    "https://{h}{p}?outputType=amp https://{h}{p}?output=amp",
    "AMP caches": "https://{dashed}.cdn.ampproject.org/c/s/{h}{p} "
    "https://x.cdn.ampproject.org/v/s/www.{h}{p}?amp=1 https://www.google.com/amp/s/{h}{p} "
    "https://www.google.co.uk/amp/s/amp.{h}{p}/amp https://www.bing-amp.com/c/s/{h}{p}",
}


def _parts(host: str, path: str) -> dict[str, str]:
    return {
        "h": host,
        "p": path,
        "H": host.upper(),
        "escaped": f"%{ord(host[0]):x}{host[1:]}",
        "dashed": host.replace(".", "-"),
        "back": path.replace("/", "\\"),
        "first": f"/%{ord(path[1]):02x}{path[2:]}",
        "last": f"{path[:-1]}%{ord(path[-1]):x}",
        "Last": f"{path[:-1]}%{ord(path[-1]):X}",
        "broken": f"{path[:3]}\n{path[3:]}",
        "blank": " ",
        "line": "\n",
    }


def spellings(host: str, path: str) -> Iterator[str]:
    """Yield every spelling of a page; `path` has no query and does not end with a slash."""
    parts = _parts(host, path)
    for line in SPELLINGS.values():
        yield from (one.format(**parts) for one in line.split(" "))


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
