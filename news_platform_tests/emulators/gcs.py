"""The APIs of Google Cloud Storage, as a shim in front of an S3 emulator.

obstore and Polars speak the XML API; of the JSON API there is what Google's own client needs to
write, read, find and delete objects.

Google's conditional requests differ from S3's: a version is a generation number, sent as
`x-goog-if-generation-match` (0: must not exist) and returned as `x-goog-generation`.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from news_platform_tests.emulators.relay import Answer, Request, forward, serve

_PRECONDITION_FAILED = b"<Error><Code>PreconditionFailed</Code></Error>"
# The S3 emulator does not check signatures, but hides objects from requests without one.
_S3_AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=test/20250101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
)
_NO_SUCH_KEY = b"<Error><Code>NoSuchKey</Code></Error>"


@dataclass(slots=True)
class GoogleShim:
    """Translate each request to S3 and count the generations of every object."""

    upstream: str
    _generations: dict[str, int] = field(default_factory=dict)
    _last: int = 0
    _lock: Lock = field(default_factory=Lock)

    def answer(self, request: Request) -> Answer:
        if "/storage/v1/" in request.path:
            return self._answer_json(request)
        request = _for_s3(request)
        if request.method in ("GET", "HEAD"):
            return self._with_generation(request, forward(request, self.upstream))
        with self._lock:
            return self._write(request)

    def _answer_json(self, request: Request) -> Answer:
        """Translate a request of the JSON API to one of the XML API, and its answer back."""
        bucket, _, name = request.path.partition("/v1/b/")[2].partition("/o")
        name = unquote(name.lstrip("/")) or request.query.get("name", [""])[0]
        target, found = f"/{bucket}/{quote(name)}", {"bucket": bucket, "name": name}
        match request.method, request.query.get("uploadType"):
            case "POST", ["resumable"]:
                host = request.headers["host"]
                name = name or json.loads(request.body)["name"]
                place = f"http://{host}{request.path}?name={quote(name, safe='')}"
                return Answer(200, {"location": place}, b"", 0)
            case "GET", _ if "alt" in request.query:
                return self.answer(replace(request, target=target))
            case "GET", _ if not name and request.path.endswith("/o"):
                return _json(200, {"items": []})
            case "GET", _:
                found_answer = self.answer(replace(request, method="HEAD", target=target))
                return _json(found_answer.status, found)
            case method, _:
                done = self.answer(replace(request, target=target))
                return _json(done.status, found) if method == "PUT" else done

    def _write(self, request: Request) -> Answer:
        wanted = request.headers.get("x-goog-if-generation-match")
        present = self._generations.get(request.path, 0)
        if wanted is not None and int(wanted) != present:
            return _xml(412, _PRECONDITION_FAILED)
        if request.method == "DELETE" and "uploadId" not in request.query and not present:
            return _xml(404, _NO_SUCH_KEY)
        answer = forward(request, self.upstream)
        if answer.status < 300:
            self._count(request)
        return self._with_generation(request, answer)

    def _count(self, request: Request) -> None:
        if request.method == "DELETE":
            self._generations.pop(request.path, None)
        elif "partNumber" not in request.query and "uploads" not in request.query:
            self._last += 1
            self._generations[request.path] = self._last

    def _with_generation(self, request: Request, answer: Answer) -> Answer:
        generation = self._generations.get(request.path)
        if generation is None:
            return answer
        return replace(answer, headers={**answer.headers, "x-goog-generation": str(generation)})


@contextmanager
def gcs_server(s3_url: str) -> Iterator[str]:
    """Run the shim in front of an S3 server and yield its URL."""
    with serve(GoogleShim(s3_url)) as url:
        yield url


def service_account_key(server_url: str) -> str:
    """Return a service account key that points to the shim and needs no token."""
    return json.dumps(
        {
            "gcs_base_url": server_url,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
    )


def _for_s3(request: Request) -> Request:
    # Google's clients encode every character of a path, slashes too, and send a bearer token.
    parts = urlsplit(request.target)
    target = urlunsplit(parts._replace(path=quote(unquote(parts.path))))
    headers = {**request.headers, "authorization": _S3_AUTHORIZATION}
    return replace(request, target=target, headers=headers)


def _json(status: int, document: object) -> Answer:
    body = json.dumps(document).encode()
    return Answer(status, {"content-type": "application/json"}, body, len(body))


def _xml(status: int, body: bytes) -> Answer:
    return Answer(status, {"content-type": "application/xml"}, body, len(body))
