"""Pure: one page and all spellings of its address, to find it wherever it was stored."""

from dataclasses import dataclass
from typing import Self

from news_platform.takedowns.spellings import bare_key, page_keys, shown_spellings, without_amp
from news_platform.web.urls import canonical_url, registrable_domain, url_hash, url_host


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
