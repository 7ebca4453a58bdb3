"""The exceptions of the HTTP client in, one FetchError with its reason out."""

import ssl

import aiohttp

from news_platform.errors import FetchError
from news_platform.web.guard import BlockedAddress


def as_fetch_error(error: aiohttp.ClientError | OSError | FetchError, url: str) -> FetchError:
    """Return the error of a fetch, with one word of why to count by."""
    if isinstance(error, FetchError):
        return FetchError(f"cannot fetch {url!r}: {error}", thing=url, reason=error.reason)
    detail = str(error) or type(error).__name__
    return FetchError(f"cannot fetch {url!r}: {detail}", thing=url, reason=_reason(error))


_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "timeout"),
    (BlockedAddress, "blocked_address"),
    (ConnectionRefusedError, "refused"),
    (ConnectionResetError, "reset"),
    (aiohttp.ClientConnectorDNSError, "dns"),
    (aiohttp.InvalidURL, "bad_url"),
    (aiohttp.ClientSSLError, "tls"),
    (ssl.SSLError, "tls"),
    (aiohttp.ClientPayloadError, "incomplete"),
    (aiohttp.ServerDisconnectedError, "reset"),
    (aiohttp.ClientResponseError, "protocol"),
)


def _reason(error: BaseException | None) -> str:
    """Return the reason of the first known cause in the chain of exceptions."""
    while error is not None:
        for kind, reason in _REASONS:
            if isinstance(error, kind):
                return reason
        error = error.__cause__ or error.__context__
    return "network"
