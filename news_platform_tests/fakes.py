"""Stand-ins for the outside world: a web that is a dict."""

from collections.abc import Mapping

from news_platform.domain_metadata.usage_files import SMALL_FILES
from news_platform.errors import FetchError
from news_platform.web.fetch import Response


class FakeFetcher:
    """Answer from a dict of URL to body, Response or FetchError; an unlisted URL raises.

    A tuple or list gives one answer a request, the last one for ever. `requests` records what was
    asked, `delays` the crawl-delays set.
    """

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = dict(answers)
        self.requests: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.delays: dict[str, float] = {}

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        private_headers: Mapping[str, str] | None = None,
        max_body_bytes: int | None = None,
    ) -> Response:
        """Return what the dict holds for the URL, cut at `max_body_bytes`."""
        self.requests.append(url)
        self.headers.append({**(headers or {}), **(private_headers or {})})
        if url not in self.answers:
            raise AssertionError(f"the test's web has no {url!r}")
        answer = self.answers[url]
        if isinstance(answer, tuple | list):
            answer = answer[min(self.requests.count(url), len(answer)) - 1]
        return _response(url, answer, max_body_bytes)

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Record the delay; a fake web never waits."""
        self.delays[host] = seconds


class SurveyedWeb(FakeFetcher):
    """A web whose hosts have no further files unless listed; requests for those stand apart."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        super().__init__(answers)
        self.usage_requests: list[str] = []

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        private_headers: Mapping[str, str] | None = None,
        max_body_bytes: int | None = None,
    ) -> Response:
        """Answer 404 for a file about use that the test does not list."""
        path = "/" + url.partition("://")[2].partition("/")[2]
        if path not in ("/", "/.well-known/tdmrep.json", *SMALL_FILES.values()):
            return await super().fetch(url, headers=headers, max_body_bytes=max_body_bytes)
        self.usage_requests.append(path)
        return _response(url, self.answers.get(url, response(url, status=404)), max_body_bytes)


def _response(url: str, answer: object, max_body_bytes: int | None) -> Response:
    if isinstance(answer, FetchError):
        raise FetchError(str(answer), thing=url, reason=answer.reason)
    if isinstance(answer, Response):
        return answer
    if not isinstance(answer, bytes):
        raise AssertionError(f"{url!r} must be bytes, a Response or a FetchError, not {answer!r}")
    cut = answer if max_body_bytes is None else answer[:max_body_bytes]
    return Response(url, url, 200, {}, cut, truncated=len(cut) < len(answer))


def response(
    url: str,
    *,
    status: int = 200,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    redirects: tuple[str, ...] = (),
    final_url: str | None = None,
) -> Response:
    """Return a Response for the dict of a FakeFetcher."""
    return Response(url, final_url or url, status, dict(headers or {}), body, redirects)
