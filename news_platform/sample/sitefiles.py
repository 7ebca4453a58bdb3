"""Sites as files: each host a folder with its bodies and one `site.json` that says the rest."""

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from news_platform.sample.resource import Resource
from news_platform.sample.sites import Site

ROUTES = "site.json"


def site_files(sites: Mapping[str, Site]) -> dict[str, bytes]:
    """Return the files of all hosts by their path under the sites folder."""
    files: dict[str, bytes] = {}
    for host, site in sorted(sites.items()):
        names = {target: _file_name(target) for target in site}
        routes = {target: _route(site[target], names[target]) for target in sorted(site)}
        files |= {f"{host}/{names[target]}": site[target].body for target in site}
        files[f"{host}/{ROUTES}"] = json.dumps(routes, indent=1).encode() + b"\n"
    return files


def read_sites(folder: Path) -> dict[str, dict[str, Resource]]:
    """Read every host's answers back from the sites folder."""
    return {
        routes.parent.name: _read_site(routes.parent)
        for routes in sorted(folder.glob(f"*/{ROUTES}"))
    }


def _read_site(folder: Path) -> dict[str, Resource]:
    routes = json.loads((folder / ROUTES).read_bytes())
    return {target: _resource(folder, route) for target, route in routes.items()}


def _file_name(target: str) -> str:
    """Return a readable name; what files cannot be called is told apart by a hash."""
    path = PurePosixPath(target.partition("?")[0].strip("/") or "index.html")
    if path.suffix and path.as_posix() == target.lstrip("/"):
        return path.as_posix()
    mark = sha256(target.encode()).hexdigest()[:8]
    return f"{path.with_suffix('').as_posix()[:80].rstrip('/%')}-{mark}.body"


def _route(resource: Resource, name: str) -> dict[str, object]:
    stated: dict[str, object] = {
        "body": name,
        "content_type": resource.content_type,
        "status": resource.status,
        "location": resource.location,
        "modified_at": resource.modified_at and resource.modified_at.isoformat(),
        "etag": resource.etag,
        "gzipped": resource.gzipped,
        "retry_after_seconds": resource.retry_after_seconds,
    }
    return {key: value for key, value in stated.items() if value not in (None, False)}


def _resource(folder: Path, route: Mapping[str, Any]) -> Resource:
    modified = route.get("modified_at")
    return Resource(
        body=(folder / route["body"]).read_bytes(),
        content_type=route["content_type"],
        status=route["status"],
        location=route.get("location"),
        modified_at=datetime.fromisoformat(modified) if modified else None,
        etag=route.get("etag", False),
        gzipped=route.get("gzipped", False),
        retry_after_seconds=route.get("retry_after_seconds"),
    )
