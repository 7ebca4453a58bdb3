"""Redirects: the status codes, the next URL to fetch, and whether a resource moved permanently."""

from collections.abc import Iterable, Sequence

from yarl import URL

from news_platform.errors import FetchError

REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
_PERMANENT_STATUSES = frozenset((301, 308))


def next_url(current: URL, location: str, *, visited: Sequence[str], max_redirects: int) -> str:
    """Return the URL that a `Location` header leads to, without its fragment.

    `visited` are the URLs so far, `current` included. Raise FetchError if the header cannot be
    parsed (bad_url), or for a loop or too many redirects (too_many_redirects).
    """
    try:
        target = str(current.join(URL(location)).with_fragment(None))
    except ValueError as error:
        message = f"cannot follow {str(current)!r} to {location!r}: {error}"
        raise FetchError(message, thing=str(current), reason="bad_url") from error
    if target in visited or len(visited) > max_redirects:
        message = f"cannot fetch {visited[0]!r}: gave up after {len(visited)} redirects"
        raise FetchError(message, thing=visited[0], reason="too_many_redirects")
    return target


def is_permanent_redirect(statuses: Iterable[int]) -> bool:
    """Return True if there was a redirect and every one of them was permanent."""
    found = tuple(statuses)
    return bool(found) and _PERMANENT_STATUSES.issuperset(found)
