"""Serve every host of a written sample world on loopback, from files under its sites folder."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Any
from urllib.parse import quote, unquote

from news_platform.sample.newsroom import WORLD_NOW
from news_platform.sample.outlets import TEXT, SiteResponse, gzip_member, http_date
from news_platform.sample.sites import Site

ROUTES = "site.json"


def site_files(sites: Mapping[str, Site]) -> dict[str, bytes]:
    """Return the responses of all hosts as files, by path under the sites folder."""
    files: dict[str, bytes] = {}
    for host, site in sorted(sites.items()):
        names = {target: _file_name(target) for target in site}
        routes = {target: _route(site[target], names[target]) for target in sorted(site)}
        files |= {f"{host}/{names[target]}": site[target].body for target in site}
        files[f"{host}/{ROUTES}"] = (
            json.dumps(routes, indent=1, default=datetime.isoformat).encode() + b"\n"
        )
    return files


def read_sites(folder: Path) -> dict[str, dict[str, SiteResponse]]:
    """Read the responses of every host from the sites folder."""
    return {
        routes.parent.name: _read_site(routes.parent)
        for routes in sorted(folder.glob(f"*/{ROUTES}"))
    }


def _read_site(folder: Path) -> dict[str, SiteResponse]:
    routes = json.loads((folder / ROUTES).read_bytes())
    return {target: _read_response(folder, route) for target, route in routes.items()}


def _file_name(target: str) -> str:
    """Return a readable file name; a hash replaces what file names cannot contain."""
    path = PurePosixPath(target.partition("?")[0].strip("/") or "index.html")
    if path.suffix and path.as_posix() == target.lstrip("/"):
        return path.as_posix()
    mark = sha256(target.encode()).hexdigest()[:8]
    return f"{path.with_suffix('').as_posix()[:80].rstrip('/%')}-{mark}.body"


def _route(response: SiteResponse, name: str) -> dict[str, object]:
    stated = {**asdict(response), "body": name}
    return {key: value for key, value in stated.items() if value not in (None, False)}


def _read_response(folder: Path, route: Mapping[str, Any]) -> SiteResponse:
    modified = route.get("modified_at")
    stated = {
        **route,
        "body": (folder / route["body"]).read_bytes(),
        "modified_at": datetime.fromisoformat(modified) if modified else None,
    }
    return SiteResponse(**stated)


_MISSING = SiteResponse(b"Not found\n", content_type=TEXT, status=404)
_STRANGER = SiteResponse(b"No such site\n", content_type=TEXT, status=421)


@contextmanager
def serve_world(folder: Path) -> Iterator[Mapping[str, tuple[str, int]]]:
    """Serve the world from a thread; yield the host map for fetchers."""
    server = _Server(read_sites(folder / "sites"))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield {host: ("127.0.0.1", server.server_port) for host in sorted(server.sites)}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(resource: SiteResponse, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body for a request of this response."""
    fields = {"Content-Type": resource.content_type, **_validators(resource)}
    if resource.location:
        fields["Location"] = resource.location
    if resource.retry_after_seconds is not None:
        fields["Retry-After"] = str(resource.retry_after_seconds)
    if _is_unchanged(resource, fields, headers):
        return HTTPStatus.NOT_MODIFIED, fields, b""
    if not resource.gzipped:
        return resource.status, fields, resource.body
    fields["Vary"] = "Accept-Encoding"
    if "gzip" not in headers.get("accept-encoding", ""):
        return resource.status, fields, resource.body
    fields["Content-Encoding"] = "gzip"
    return resource.status, fields, gzip_member(resource.body)


def _validators(resource: SiteResponse) -> dict[str, str]:
    fields: dict[str, str] = {}
    if resource.etag:
        # Weak if the body may be sent compressed or not.
        weak = "W/" if resource.gzipped else ""
        fields["ETag"] = f'{weak}"{sha256(resource.body).hexdigest()[:20]}"'
    if resource.modified_at:
        fields["Last-Modified"] = http_date(resource.modified_at)
    return fields


def _is_unchanged(
    resource: SiteResponse, fields: Mapping[str, str], headers: Mapping[str, str]
) -> bool:
    """Compare validators as in RFC 9110: If-None-Match takes precedence."""
    if resource.status != HTTPStatus.OK:
        return False
    if "if-none-match" in headers:
        wanted = {tag.strip().removeprefix("W/") for tag in headers["if-none-match"].split(",")}
        return "*" in wanted or fields.get("ETag", "").removeprefix("W/") in wanted - {""}
    since = _parsed_date(headers.get("if-modified-since", ""))
    return bool(since and resource.modified_at and resource.modified_at <= since)


def _plain(target: str) -> str:
    """Return the target in the escaping of our sites, without campaign parameters."""
    path, _, query = target.partition("?")
    kept = [part for part in query.split("&") if part and not part.startswith("utm_")]
    return quote(unquote(path)) + ("?" + "&".join(kept) if kept else "")


def _parsed_date(value: str) -> datetime | None:
    try:
        return parsedate_to_datetime(value)
    except ValueError:
        return None


class _Server(ThreadingHTTPServer):
    # Closing the server does not wait for clients that keep their connections.
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, sites: Mapping[str, Mapping[str, SiteResponse]]) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.sites = sites

    def find(self, host: str, target: str) -> SiteResponse:
        """Return the response of a host, whatever the escaping and tracking parameters."""
        site = self.sites.get(host.partition(":")[0].lower())
        if site is None:
            return _STRANGER
        return site.get(target) or site.get(_plain(target)) or _MISSING

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect during a response."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # typeshed's union


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "SampleWorld"
    sys_version = ""
    server: _Server

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        resource = self.server.find(headers.get("host", ""), self.path)
        status, fields, body = answer(resource, headers)
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the time of the world, not of the machine."""
        return http_date(WORLD_NOW)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the demo prints its own lines."""
