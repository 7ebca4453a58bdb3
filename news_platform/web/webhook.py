"""Post a JSON document to a server that the operator named, and return its answer.

The address may be a secret, so no message names it. Unlike pages and feeds, it is not foreign: it
may lie in the operator's own network.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping

from news_platform.errors import ConfigError, FetchError

# Enough for any answer that is read; more is not taken from a broken server.
_MAX_ANSWER_BYTES = 1_000_000


class PostRejected(FetchError):
    """The server understood the request and does not want it; a retry does not help."""


def post_json(
    url: str,
    document: object,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = 5.0,
) -> bytes:
    """Post once and return the answer; raise FetchError, or PostRejected if a retry is useless."""
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError("invalid address of a webhook: expected an http(s):// URL")
    sent = {"Content-Type": "application/json", "User-Agent": "news-platform", **(headers or {})}
    try:
        request = urllib.request.Request(url, json.dumps(document).encode(), sent, method="POST")
        with urllib.request.urlopen(request, timeout=timeout_seconds) as answer:
            return bytes(answer.read(_MAX_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        is_final = error.code < 500 and error.code not in (408, 425, 429)
        kind = PostRejected if is_final else FetchError
        raise kind(f"HTTP {error.code}", reason="status") from None
    except ValueError as error:  # the messages of both may contain the URL
        raise PostRejected(type(error).__name__, reason="address") from None
    except OSError as error:
        raise FetchError(type(getattr(error, "reason", error)).__name__) from None
