"""Stored pages of institutions, as a crawler left them: the only input of source_records."""

SNAPSHOTS_FOLDER = "snapshots"
_KEY = "institution="


def institution_folder(institution: str) -> str:
    """Return where the snapshots of an institution lie under the root."""
    return f"{SNAPSHOTS_FOLDER}/{_KEY}{institution}"


def institution_of(path: str) -> str | None:
    """Return the institution a snapshot's path names, or None for a file that is no snapshot."""
    parts = path.split("/")
    if len(parts) < 3 or parts[0] != SNAPSHOTS_FOLDER or not parts[1].startswith(_KEY):
        return None
    return parts[1].removeprefix(_KEY) or None
