"""Post a JSON document to a server that the operator named, and return its answer.

The address may be a secret, so no message names it. Unlike pages and feeds, it is not foreign: it
may lie in the operator's own network. Redirects are not followed: they would carry the document,
and the key in its headers, to a place that the operator did not name.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Mapping

import aiohttp

from news_platform.errors import ConfigError, FetchError

SIGNATURE_HEADER = "News-Platform-Signature"
# Enough for any answer that is read; more is not taken from a broken server.
_MAX_ANSWER_BYTES = 1_000_000


class PostRejected(FetchError):
    """The server understood the request and does not want it; a retry does not help."""


def signature(body: bytes, secret: str, *, at: int) -> str:
    """Return the header by which a receiver knows the sender: the time, and an HMAC-SHA256."""
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def post_json(
    url: str,
    document: object,
    *,
    headers: Mapping[str, str] | None = None,
    secret: str = "",
    timeout_seconds: float = 5.0,
) -> bytes:
    """Post once and return the answer; raise FetchError, or PostRejected if a retry is useless.

    With a secret, the request is signed. The timeout is for all of it: a server that sends one
    byte at a time keeps nobody waiting.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError("invalid address of a webhook: expected an http(s):// URL")
    body = json.dumps(document).encode()
    sent = {"Content-Type": "application/json", "User-Agent": "news-platform", **(headers or {})}
    if secret:
        sent[SIGNATURE_HEADER] = signature(body, secret, at=int(time.time()))
    try:
        status, answer = asyncio.run(_post(url, body, sent, timeout_seconds))
    # The messages of all of these may contain the URL.
    except TimeoutError:
        raise FetchError("TimeoutError", reason="timeout") from None
    except aiohttp.ClientConnectorError as error:
        raise FetchError(
            type(getattr(error, "os_error", error)).__name__, reason="connection"
        ) from None
    except ValueError as error:
        raise PostRejected(type(error).__name__, reason="address") from None
    except (aiohttp.ClientError, OSError) as error:
        raise FetchError(type(error).__name__, reason="answer") from None
    if 300 <= status < 400:
        raise PostRejected(f"HTTP {status}: redirects are not followed", reason="redirect")
    if status >= 400:
        is_final = status < 500 and status not in (408, 425, 429)
        raise (PostRejected if is_final else FetchError)(f"HTTP {status}", reason="status")
    return answer


async def _post(
    url: str, body: bytes, headers: Mapping[str, str], seconds: float
) -> tuple[int, bytes]:
    # The proxies of the environment are the operator's, too.
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(seconds), trust_env=True) as session,
        session.post(url, data=body, headers=headers, allow_redirects=False) as answer,
    ):
        kept = bytearray()
        async for part in answer.content.iter_any():
            kept += part
            if len(kept) >= _MAX_ANSWER_BYTES:
                break
        return answer.status, bytes(kept[:_MAX_ANSWER_BYTES])
