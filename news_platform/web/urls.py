"""Canonical form, hash, registrable domain and SURT of a URL, without the network.

Nothing here raises, because URLs come from strangers by the million: text that is not a web address
is returned without surrounding blanks but otherwise unchanged, and its domain is empty.
"""

import hashlib
import re
import string
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

import idna

if TYPE_CHECKING:
    from tldextract import TLDExtract

_DEFAULT_PORTS = {"http": "80", "https": "443"}
# A crawl file contains about ten thousand hosts, each with many pages.
_HOSTS_CACHED = 32_768
# Characters that browsers never escape in a path or query (the set of encodeURIComponent).
_PLAIN = frozenset(string.ascii_letters + string.digits + "-._~!'()*")

_BLANKS = "".join(map(chr, range(33))) + "\x7f\xa0\ufeff<>"
_LINE_BREAKS = re.compile(r"[\t\r\n]+")
# Browsers accept any number of (back)slashes after http:, and some feeds double the scheme.
_URL = re.compile(
    r"(?:(?:https?:[\\/]+(?=https?:[\\/]{2}))*(https?):[\\/]*|([a-z][a-z0-9+.-]*)://|[\\/]{2})?"
    r"([^\\/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?",
    re.IGNORECASE | re.DOTALL,
)
_AUTHORITY = re.compile(r"(?:(.*)@)?(\[[^\]]*\]|[^:]*)(:0*([0-9]{0,5}))?", re.DOTALL)
_ESCAPED_AMPERSAND = re.compile(r"&(?:amp;|#0*38;)+")
_LEADING_AMP = re.compile(r"(?:amp;)+")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_SLASHES = re.compile(r"(?<!:)/{2,}")
_PATH_SAFE = "%/:@!$&'()*+,;=~"
_QUERY_SAFE = _PATH_SAFE + "?[]"


_TRACKERS = tomllib.loads((files(__package__) / "trackers.toml").read_text(encoding="utf-8"))
_TRACKER_PREFIXES = tuple(_TRACKERS["prefixes"].split())
_TRACKER_NAMES = frozenset(" ".join(_TRACKERS["names"].values()).split())
_SITE_TRACKERS = {site: frozenset(names.split()) for site, names in _TRACKERS["sites"].items()}
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid)=[^/;]*", re.IGNORECASE)


class _UrlParts(NamedTuple):
    scheme: str
    authority: str
    path: str
    query: str
    fragment: str


class _Authority(NamedTuple):
    userinfo: str
    host: str
    port: str | None  # None when it is not a number


def canonical_url(url: str) -> str:
    """Return the canonical spelling of an article's URL.

    Lower-case scheme and host (punycode), no login, no default port, no dot segments or doubled
    slashes, percent-escapes only where needed, query sorted and without trackers, no fragment
    except `#!`.
    Without a scheme, https is assumed. Other schemes are returned unchanged, without blanks.
    """
    text = _ESCAPED_AMPERSAND.sub("&", _clean(url))
    parts = _split(text)
    scheme = parts.scheme or _scheme_of_bare(text, parts.authority)
    authority = _authority(parts.authority)
    if scheme not in _DEFAULT_PORTS or not authority.host or authority.port is None:
        return text
    site = _site(authority, default_port=_DEFAULT_PORTS[scheme])
    query = _canonical_query(parts.query, host=authority.host)
    fragment = f"#{_escape(parts.fragment, safe=_QUERY_SAFE)}" if parts.fragment[:1] == "!" else ""
    return f"{scheme}://{site}{_canonical_path(parts.path)}{query and '?' + query}{fragment}"


def url_hash(url: str) -> str:
    """Return the SHA-256 of the canonical URL in hex."""
    return hashlib.sha256(canonical_url(url).encode("utf-8", "replace")).hexdigest()


@lru_cache(maxsize=_HOSTS_CACHED)
def registrable_domain(host: str) -> str:
    """Return the domain directly under a public suffix, in punycode: `bbc.co.uk`.

    For IP addresses, public suffixes themselves and unknown suffixes, return the whole host.
    """
    name = url_host(host)
    return _suffixes().extract_str(name).top_domain_under_public_suffix or name


def has_registrable_domain(host: str) -> bool:
    """Return whether a host lies under a public suffix: not for `co.uk`, an IP address or `x`."""
    return bool(_suffixes().extract_str(url_host(host)).top_domain_under_public_suffix)


def is_public_suffix(host: str) -> bool:
    """Return whether a name is a public suffix, under which others register: `co.uk`."""
    return _suffixes().extract_str(host).suffix == host


def url_host(url: str) -> str:
    """Return the host of a URL in lower-case punycode, without port; IPv6 without its brackets."""
    return _authority(_split(_clean(url)).authority).host


def plain_host(name: str) -> str:
    """Return a host in lower-case punycode, without surrounding blanks or a final dot.

    A name that IDNA does not allow is returned in lower case.
    """
    host = name.strip(_BLANKS).rstrip(f".{_BLANKS}").lower()
    if host.isascii():
        return host
    try:
        return idna.encode(host, uts46=True).decode()
    except idna.IDNAError:
        return host


def unicode_host(host: str) -> str:
    """Return a host in punycode as people write it; any other is returned as it is."""
    try:
        return idna.decode(host)
    except idna.IDNAError:
        return host


def url_path(url: str) -> str:
    """Return the path of a URL as it is written."""
    return _split(_clean(url)).path


def stated_address(url: str, canonical_link: str) -> str:
    """Return the canonical form of the address that a page calls its own, if it can be believed.

    Otherwise return that of `url`, where the page was found. A link to another domain or to a home
    page is not believed, nor one that drops a parameter of the same path which may be a number.
    """
    found, stated = canonical_url(url), canonical_url(canonical_link)
    ours, theirs = _split(found), _split(stated)
    if theirs.path in ("", "/") or (
        registrable_domain(theirs.authority) != registrable_domain(ours.authority)
    ):
        return found
    dropped = set(ours.query.split("&")) - set(theirs.query.split("&"))
    is_same_page = theirs.path.rstrip("/") == ours.path.rstrip("/")
    if is_same_page and any(character.isdigit() for piece in dropped for character in piece):
        return found
    return stated


def is_tracker(name: str, host: str = "") -> bool:
    """Return True if the query parameter `name`, in any case, only tracks the reader.

    Some names do so on the sites of one publisher alone.
    """
    lower = name.lower()
    if lower in _TRACKER_NAMES or lower.startswith(_TRACKER_PREFIXES):
        return True
    return bool(host) and lower in _SITE_TRACKERS.get(registrable_domain(host), ())


def reversed_domain(url: str) -> str:
    """Return the registrable domain with its labels reversed: `fyi.levels` for www.levels.fyi."""
    return _reversed_domain(_split(_clean(url)).authority)


def surt(url: str) -> str:
    """Return the sortable form without scheme, `www.` and fragment: `fyi,levels)/nl-nl/x`.

    The host's labels are reversed, a non-default port is kept, path and query are unchanged.
    """
    parts = _split(_clean(url))
    site = _surt_site(parts.authority, _DEFAULT_PORTS.get(parts.scheme))
    query = f"?{parts.query}" if parts.query else ""
    return f"{site}){parts.path or '/'}{query}"


def reversed_labels(host: str) -> str:
    """Return a host with its labels in the opposite order: `uk.co.bbc` of `bbc.co.uk`, and back."""
    return ".".join(reversed(host.split(".")))


@lru_cache(maxsize=_HOSTS_CACHED)
def _reversed_domain(authority: str) -> str:
    return reversed_labels(registrable_domain(authority))


@lru_cache(maxsize=_HOSTS_CACHED)
def _surt_site(authority: str, default_port: str | None) -> str:
    _, host, port = _authority(authority)
    bare = host.removeprefix("www.")
    labels = (bare if "." in bare else host).split(".")
    suffix = f":{port}" if port and port != default_port else ""
    return ",".join(reversed(labels)) + suffix


def _clean(url: str) -> str:
    return _LINE_BREAKS.sub("", url.strip(_BLANKS))


def _split(text: str) -> _UrlParts:
    match = _URL.match(text)
    assert match is not None  # every group is optional, so any text matches
    web_scheme, other_scheme, authority, path, query, fragment = match.groups("")
    return _UrlParts((web_scheme or other_scheme).lower(), authority, path, query, fragment)


def _scheme_of_bare(text: str, authority: str) -> str:
    """Return https for `//host/…` and for a bare `site.org/…`, nothing for a relative path."""
    if text.startswith(("//", "\\\\")):
        return "https"
    userinfo, host, _ = _authority(authority)
    is_site = not userinfo and _suffixes().extract_str(host).top_domain_under_public_suffix
    return "https" if is_site else ""


@lru_cache(maxsize=_HOSTS_CACHED)
def _authority(text: str) -> _Authority:
    match = _AUTHORITY.match(text)
    assert match is not None  # every group is optional, so any text matches
    userinfo, host, _, port = match.groups("")
    return _Authority(userinfo.strip(":"), _host(host), port if match.end() == len(text) else None)


def _host(text: str) -> str:
    host = plain_host(unquote(text))
    return host.strip("[]") if host.isascii() else host


def _site(authority: _Authority, *, default_port: str) -> str:
    # A login does not choose the page: with it, a removed page would come back as another one.
    host = f"[{authority.host}]" if ":" in authority.host else authority.host
    port = f":{authority.port}" if authority.port and authority.port != default_port else ""
    return f"{host}{port}"


def _canonical_path(path: str) -> str:
    if ";" in path:
        path = _SESSION_IN_PATH.sub("", path)
    escaped = _escape(path.replace("\\", "/"), safe=_PATH_SAFE)
    if "/." in escaped:
        escaped = _without_dot_segments(escaped)
    return _SLASHES.sub("/", escaped) or "/"


def _without_dot_segments(path: str) -> str:
    kept: list[str] = []
    *folders, last = path.split("/")[1:]
    for segment in [*folders, "" if last in (".", "..") else last]:
        if segment == ".." and kept:
            kept.pop()
        elif segment not in (".", ".."):
            kept.append(segment)
    if last == ".." and len(kept) > 1:
        del kept[-2]
    return "/" + "/".join(kept)


def _canonical_query(query: str, *, host: str) -> str:
    """Return the query without trackers, sorted by name and then by value."""
    pairs: list[tuple[str, str, str]] = []
    for piece in query.split("&") if query else ():
        name, equals, value = _LEADING_AMP.sub("", piece, count=1).partition("=")
        if (
            (name or equals)
            and not is_tracker(unquote(name), host)
            and not _is_own_ref(name, value, host)
        ):
            pairs.append((_query_escape(name), equals, _query_escape(value)))
    pairs.sort(key=lambda pair: (pair[0], pair[2]))
    return "&".join(map("".join, pairs))


def _is_own_ref(name: str, value: str, host: str) -> bool:
    """Return True for `?ref=<the page's own host>`; any other `ref` may choose the page."""
    return name == "ref" and value.lower().removeprefix("www.") == host.removeprefix("www.")


def _query_escape(text: str) -> str:
    """Escape so that all spellings of a space (`+`, `%20`, a space) become `+`."""
    return _escape(text, safe=_QUERY_SAFE).replace("%20", "+")


def _escape(text: str, *, safe: str) -> str:
    if "%" in text:
        text = _PERCENT.sub(_canonical_escape, text)
    return quote(text, safe=safe, errors="replace")


def _canonical_escape(match: re.Match[str]) -> str:
    """Decode needless escapes and write the others in capitals; a lone `%` becomes `%25`."""
    digits = match[1]
    if digits is None:
        return "%25"
    character = chr(int(digits, 16))
    return character if character in _PLAIN else f"%{digits.upper()}"


@cache
def _suffixes() -> "TLDExtract":
    """Return the public suffix list that ships with tldextract.

    `suffix_list_urls=()` and no cache folder mean that neither network nor disk is touched. RFC
    2606 reserves `.example` for hosts that must not exist.
    """
    # Imported here: tldextract loads requests, 0.2 s that a process which reads no URL saves.
    from tldextract import TLDExtract

    return TLDExtract(
        cache_dir=None,
        suffix_list_urls=(),
        fallback_to_snapshot=True,
        include_psl_private_domains=False,
        extra_suffixes=("example",),
    )
