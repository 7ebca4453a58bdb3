"""Pure: a canonical URL in, the key that all spellings of its page share out.

A key has no scheme, no `www.` and no AMP marks. Trackers, ports and escapes are gone already in
the canonical URL. `PageAddress` is one page with all its spellings, to find it wherever it was
stored.
"""

import re
from dataclasses import dataclass
from typing import Self

from news_platform.web.urls import canonical_url, registrable_domain, url_hash, url_host

# https://DOMAIN.cdn.ampproject.org/c/s/PAGE, https://www.google.com/amp/s/PAGE, and Bing's cache.
_AMP_CACHE = re.compile(
    r"(?:[^/]+\.cdn\.ampproject\.org/(?:[a-z]/)?|google\.[a-z.]+/amp/|bing-amp\.com/c/)(?:s/)?(?=[^/]+\.)"
)
_MAY_BE_AMP = re.compile(r"(?:^|[/.?&=])amp(?:[/.?&=]|$)|ampproject")
_AMP_HOST = re.compile(r"^amp\.(?=[^/]+\.)")
_AMP_FOLDER = re.compile(r"/amp(?=/|$|\?)")
_AMP_END = re.compile(r"\.amp(?=\.html?$|\.html?\?|$|\?)")
_AMP_QUERY = re.compile(r"(?<=[?&])(?:amp(?:=(?:1|true|)|)|outputtype=amp)(?:&|$)", re.IGNORECASE)


def bare_key(url: str) -> str:
    """Return a canonical URL without scheme and `www.`."""
    start = url.find("://") + 3
    if start < 3:  # not a web address
        return url
    return url[start + 4 :] if url.startswith("www.", start) else url[start:]


def without_amp(key: str) -> str:
    """Return the key of the page that an AMP address shows; any other key is returned as it is."""
    if _MAY_BE_AMP.search(key) is None:
        return key
    found = key
    if "/s/" in key or "ampproject" in key:
        found = _AMP_CACHE.sub("", found).removeprefix("www.")
    if found.startswith("amp."):
        found = _AMP_HOST.sub("", found)
    found = _AMP_FOLDER.sub("", found, count=1)
    if ".amp" in found:
        found = _AMP_END.sub("", found)
    if "?" in found:
        found = _AMP_QUERY.sub("", found).rstrip("?&")
    return found if "/" in found else f"{found}/"


def page_keys(url: str) -> tuple[str, str]:
    """Return the two keys of a page, with and without a slash at its end."""
    key = without_amp(bare_key(url))
    slashed = key if key.endswith("/") or "?" in key else f"{key}/"
    return key, slashed if slashed != key else key.rstrip("/") if key.count("/") > 1 else key


def shown_spellings(url: str) -> tuple[str, ...]:
    """Return the addresses of a page whose hashes name stored things."""
    keys = dict.fromkeys(page_keys(url))
    return tuple(
        f"{scheme}://{www}{key}"
        for key in keys
        for scheme in ("https", "http")
        for www in ("", "www.")
    )


@dataclass(frozen=True, slots=True)
class PageAddress:
    """A canonical URL, its registrable domain, and the hashes of its spellings."""

    url: str
    domain: str
    keys: frozenset[str]
    hashes: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the address of a page from any spelling; the hash of its own comes first."""
        canonical = canonical_url(url)
        spellings = dict.fromkeys((canonical, *shown_spellings(canonical)))
        return cls(
            url=canonical,
            domain=registrable_domain(url_host(canonical)),
            keys=frozenset(page_keys(canonical)),
            hashes=tuple(map(url_hash, spellings)),
        )

    def is_same(self, url: str) -> bool:
        """Return whether another address leads to the page, whatever its scheme or `www.`."""
        return without_amp(bare_key(canonical_url(url))) in self.keys
