"""Answer requests from a cache of what was made from this version of the data, with ETags.

An answer is made by a plain function in a thread; the event loop only reads headers. Errors of the
platform become a status: wrong input 400, nothing there 404, taken down 410.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import anyio.to_thread
from cachetools import TTLCache
from starlette.requests import Request
from starlette.responses import Response

from news_platform.errors import InputError, NewsPlatformError, redacted
from news_platform.server.app_state import AppState, NothingHere, TakenDown
from news_platform.server.versions import UNREADABLE

_CACHE_BYTES = 64 * 1024 * 1024
# What an answer takes beside its body.
_KEY_BYTES = 1024
# What is not part of the version, such as the ledger, is shown at most this late.
_CACHE_SECONDS = 60.0
# Answers are private to their reader, who revalidates them by their ETag.
_CACHE_CONTROL = "private, no-cache"
_LOG = logging.getLogger("news_platform.server")


@dataclass(frozen=True)
class Answer:
    """The bytes of an answer; `headers` are added to those that all have."""

    body: bytes
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def etag(self) -> str:
        """Return the validator of the bytes."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


_Value = TypeVar("_Value")
Make = Callable[[AppState, Request], Answer]
Refuse = Callable[[AppState, Request, int, str], Answer]
Endpoint = Callable[[Request], Awaitable[Response]]


class ResponseCache:
    """Makes and keeps the answers of one root."""

    def __init__(self, state: AppState, refuse: Refuse) -> None:
        self._state, self._refuse = state, refuse
        self._kept: TTLCache[bytes, Answer] = TTLCache(
            _CACHE_BYTES, _CACHE_SECONDS, getsizeof=lambda answer: len(answer.body) + _KEY_BYTES
        )

    def endpoint(self, make: Make) -> Endpoint:
        """Return the endpoint of a route whose answers `make` makes."""

        async def answer(request: Request) -> Response:
            return _response(request, await self._answer(make, request))

        return answer

    async def _answer(self, make: Make, request: Request) -> Answer:
        version = await self._version()
        query = request.scope["query_string"].decode("latin-1")
        # A digest: an address may be as long as a small page.
        key = hashlib.sha256(f"{version}\n{request.url.path}?{query}".encode()).digest()
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        made = await _in_thread(lambda: self._made(make, request))
        if made.status == 200 and version:
            with suppress(ValueError):  # larger than the whole cache
                self._kept[key] = made
        return made

    async def _version(self) -> str:
        """Return the version of the data; nothing if the store does not answer."""
        version = self._state.version
        try:
            return version.of() if version.is_fresh else await _in_thread(version.of)
        except (NewsPlatformError, OSError):
            return ""  # making the answer fails likewise, and says why

    def _made(self, make: Make, request: Request) -> Answer:
        state = self._state
        try:
            return state.version.retried(lambda: make(state, request))
        except TakenDown as error:
            return self._refuse(state, request, 410, str(error))
        except NothingHere as error:
            return self._refuse(state, request, 404, str(error))
        except InputError as error:
            return self._refuse(state, request, 400, str(error))
        except UNREADABLE as error:
            cause = _one_line(error, state.store.url)
            _LOG.warning("cannot answer %s: %s", request.url.path[:200], cause)
            return self._refuse(state, request, 503, f"the data cannot be read: {cause}")


def _one_line(error: BaseException, root: str) -> str:
    """Return the first line of an error; where the root lies is nobody's business."""
    line = redacted(str(error)).partition("\n")[0].replace(root, "root")
    return f"{type(error).__name__}: {line[:500]}"


async def _in_thread(function: Callable[[], _Value]) -> _Value:
    return await anyio.to_thread.run_sync(function)


def _response(request: Request, answer: Answer) -> Response:
    if answer.status != 200:
        headers = {**answer.headers, "Cache-Control": "no-store"}
        return Response(answer.body, answer.status, headers, answer.media_type)
    headers = {"ETag": answer.etag, "Cache-Control": _CACHE_CONTROL, **answer.headers}
    if is_match(request.headers.get("if-none-match", ""), answer.etag):
        return Response(status_code=304, headers=headers)
    return Response(answer.body, headers=headers, media_type=answer.media_type)


def is_match(if_none_match: str, etag: str) -> bool:
    """Return whether a header If-None-Match names the ETag; weak ones count as equal."""
    sent = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return "*" in sent or etag in sent
