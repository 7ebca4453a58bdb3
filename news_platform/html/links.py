"""Resolve the links of a page to absolute addresses."""

from urllib.parse import urljoin, urlsplit


def join_link(base: str, link: str) -> str:
    """Return a link relative to `base` as an absolute address, '' if it cannot be parsed."""
    try:
        return urljoin(base, link)
    except ValueError:  # such as a broken IPv6 host
        return ""


def absolute_link(base: str, link: str) -> str | None:
    """Return the http or https address that a link on a page leads to; None for any other link."""
    joined = join_link(base, link.strip())
    try:
        parts = urlsplit(joined)
    except ValueError:
        return None
    return joined if parts.scheme in ("http", "https") and parts.hostname else None


def base_url(page_url: str, base_href: str | None) -> str:
    """Return what relative links of a page are relative to: its `<base href>`, else its URL."""
    return join_link(page_url, base_href.strip()) or page_url if base_href else page_url
