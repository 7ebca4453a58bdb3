"""Which paths a store takes: the same on every backend, so that data can move between them."""

import re

from news_platform.errors import InputError

# Files in the making lie in local folders of this name; no path may lead there.
INCOMING = ".incoming"
_FORBIDDEN_SEGMENTS = {"", ".", "..", INCOMING}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# obstore keeps such names for its own half-written files and cannot read them back.
_RESERVED_END = re.compile(r"#\d+$")


def joined(prefix: str, path: str) -> str:
    """Return `path` under `prefix`; raise InputError for one that no store could hold."""
    if not _FORBIDDEN_SEGMENTS.isdisjoint(path.split("/")) or _CONTROL.search(path):
        raise InputError(f"not a path inside a store: {path!r}", thing=path)
    if _RESERVED_END.search(path):
        raise InputError(f"a stored name may not end in '#' and digits: {path!r}", thing=path)
    return f"{prefix}/{path}" if prefix else path


def joined_folder(prefix: str, folder: str) -> str:
    """Return `folder` under `prefix`, either of which may be empty or end in '/'."""
    folder = folder.rstrip("/")
    return joined(prefix, folder) if folder else prefix


def is_hidden(path: str) -> bool:
    """Return whether the path belongs to a file in the making."""
    return INCOMING in path and INCOMING in path.split("/")
