"""Parse and check the query parameters of a request; raise InputError for wrong ones."""

from starlette.requests import Request

from news_platform.errors import InputError
from news_platform.search.engine import MAX_LIMIT, SearchOptions
from news_platform.server.policy_view import PolicyChoice
from news_platform.server.search_view import MAX_PAGE, parse_cursor
from news_platform.text.readable import as_day

_SORTS = ("score", "date")
_MOST_VALUES = 20
_LONGEST_VALUE = 2_000


def text_of(request: Request, name: str, default: str = "") -> str:
    """Return a parameter without surrounding blanks."""
    value = request.query_params.get(name, default).strip()
    # Queries have a limit of their own, with a clearer message.
    if name != "q" and len(value) > _LONGEST_VALUE:
        raise InputError(f"invalid {name}: expected at most {_LONGEST_VALUE} characters")
    return value


def search_options(request: Request, *, limit: int) -> SearchOptions:
    """Return the options of a search."""
    sort = text_of(request, "sort", "score") or "score"
    if sort not in _SORTS:
        raise InputError(f"invalid sort {sort[:80]!r}: expected one of {', '.join(_SORTS)}")
    size = limit_of(request, default=limit)
    return SearchOptions(
        first_day=day_of(request, "from"),
        last_day=day_of(request, "to"),
        languages=_values(request, "language"),
        domains=_values(request, "domain"),
        newest_first=sort == "date",
        limit=size,
        offset=_offset(request, size),
        one_per_cluster=text_of(request, "one_per_cluster") in ("1", "true", "on"),
    )


def policy_choice(request: Request, *, limit: int = 100) -> PolicyChoice:
    """Return which policies to list."""
    size = limit_of(request, default=limit)
    return PolicyChoice(
        bot=text_of(request, "bot"),
        domain=text_of(request, "domain").lower(),
        policy=text_of(request, "policy"),
        limit=size,
        offset=parse_cursor(cursor) if (cursor := text_of(request, "cursor")) else 0,
    )


def day_of(request: Request, name: str) -> str:
    """Return a day as YYYY-MM-DD, or nothing."""
    value = text_of(request, name)
    return as_day(value[:80], name=name).isoformat() if value else ""


def limit_of(request: Request, *, default: int) -> int:
    """Return how many rows to return."""
    value = text_of(request, "limit")
    if not value:
        return default
    # isdecimal: a digit of another script, or one above the line, is not meant.
    if not (value.isascii() and value.isdecimal()) or not 1 <= int(value[:10]) <= MAX_PAGE:
        raise InputError(f"invalid limit {value[:80]!r}: expected 1 to {MAX_PAGE}")
    return int(value)


def _offset(request: Request, limit: int) -> int:
    cursor = text_of(request, "cursor")
    offset = parse_cursor(cursor) if cursor else 0
    if offset + limit > MAX_LIMIT:
        raise InputError(f"invalid cursor: only the first {MAX_LIMIT} hits can be listed")
    return offset


def _values(request: Request, name: str) -> tuple[str, ...]:
    values = tuple(value for it in request.query_params.getlist(name) if (value := it.strip()))
    if len(values) > _MOST_VALUES or any(len(value) > _LONGEST_VALUE for value in values):
        raise InputError(f"invalid {name}: expected at most {_MOST_VALUES} short values")
    return values
