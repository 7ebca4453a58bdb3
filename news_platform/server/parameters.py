"""The parameters of requests: parsed and checked here, and described in OpenAPI from here."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from starlette.requests import Request

from news_platform.errors import InputError
from news_platform.search.engine import FACETS, MAX_LIMIT, SearchOptions
from news_platform.text.readable import as_day
from news_platform.web.robots import AI_BOTS

MAX_PAGE = 100
EVERYBODY = "*"
_BOTS = {bot.name.lower(): bot.name for bot in AI_BOTS}
_TRUE = ("1", "true", "on")
_CURSOR = re.compile(rb'\{"offset": (\d{1,9})\}')


def cursor_at(offset: int) -> str:
    """Return the opaque text that names the place after so many rows."""
    return base64.urlsafe_b64encode(json.dumps({"offset": offset}).encode()).decode().rstrip("=")


def _parse_cursor(cursor: str) -> int:
    """Return the place that a cursor names; raise InputError for text that is none."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise InputError("invalid cursor: expected one from `next_cursor`") from error
    if not (found := _CURSOR.fullmatch(text)):
        raise InputError("invalid cursor: expected one from `next_cursor`")
    return int(found[1])


def _known_bot(name: str) -> str:
    if name in ("", EVERYBODY):
        return name
    if (known := _BOTS.get(name.lower())) is None:
        near = ", ".join(get_close_matches(name.lower(), _BOTS, 3)) or "see `crawlers`"
        raise InputError(f"unknown crawler {name[:80]!r}: did you mean {near}?")
    return known


def _day(text: str) -> str:
    return as_day(text[:80]).isoformat() if text else ""


Short = Annotated[str, Field(max_length=2_000)]
Shorts = Annotated[tuple[Short, ...], Field(max_length=20)]
Day = Annotated[str, AfterValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="rows of a page")]
Switch = Annotated[
    bool, BeforeValidator(lambda text: text in _TRUE), WithJsonSchema({"type": "boolean"})
]
# The place after the rows of the page before, from its cursor.
Offset = Annotated[
    int,
    BeforeValidator(_parse_cursor),
    WithJsonSchema({"type": "string"}),
    Field(alias="cursor", description="`next_cursor` of the answer before"),
]


class Parameters(BaseModel):
    """The parameters of one path; one without a value has its default."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def of(cls, request: Request, **defaults: Any) -> Self:
        """Return the parameters of a request; raise InputError for a wrong one."""
        given: dict[str, Any] = {**defaults, **request.path_params}
        for name, item in cls.model_fields.items():
            key = item.alias or name
            sent = [text for it in request.query_params.getlist(key) if (text := it.strip())]
            if sent:
                given[key] = sent if get_origin(item.annotation) is tuple else sent[-1]
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            value = str(found["input"])[:80]
            raise InputError(f"invalid {found['loc'][0]} {value!r}: {found['msg']}") from error

    @classmethod
    def described(cls) -> Mapping[str, Mapping[str, Any]]:
        """Return the JSON schema of each parameter."""
        found: Mapping[str, Mapping[str, Any]] = cls.model_json_schema()["properties"]
        return found


class Query(Parameters):
    """What a page looks for."""

    q: Short = ""


class SearchParameters(Parameters):
    """A search, its filters and its order."""

    # The query has a limit of its own, with a clearer message.
    q: str = Field("", description='words, "phrases", AND, OR, NOT, (brackets), field:word')
    first_day: Day = Field(
        "", alias="from", description="first day; by default the newest days are searched"
    )
    last_day: Day = Field("", alias="to", description="last day")
    languages: Shorts = Field((), alias="language", description="only these languages")
    domains: Shorts = Field((), alias="domain", description="only these domains")
    sort: Literal["score", "date"] = Field("score", description="order of the hits")
    one_per_cluster: Switch = Field(False, description="leave out near-identical articles")
    limit: Limit = 20
    offset: Offset = 0

    def options(self) -> SearchOptions:
        """Return the options of the search."""
        if self.offset + self.limit > MAX_LIMIT:
            raise InputError(f"invalid cursor: only the first {MAX_LIMIT} hits can be listed")
        same = self.model_dump(exclude={"q", "sort"})
        return SearchOptions(**same, newest_first=self.sort == "date")


class ArticleParameters(Parameters):
    """The key of an article."""

    url_hash: str = Field(description="SHA-256 hex of the canonical address")
    day: Day = Field("", description="look only at the captures of this day, which is faster")


class DomainParameters(Parameters):
    """The name of a domain."""

    domain: str = Field(description="registrable domain, such as bbc.co.uk")


class ExplainParameters(Parameters):
    """What to explain."""

    subject: Short = Field("", description="a URL, a domain or a feed")


class PolicyChoice(Parameters):
    """Which verdicts to list; empty means all."""

    bot: Annotated[Short, AfterValidator(_known_bot)] = Field(
        "", description="only this crawler, as robots.txt names it; `*` for all others"
    )
    domain: Annotated[Short, AfterValidator(str.lower)] = Field("", description="only this domain")
    purpose: Literal["", "index", "search", "ai_input", "ai_train"] = Field(
        "", description="only this purpose"
    )
    verdict: Literal["", "refuse", "partial", "allow", "unspecified", "conflicting"] = Field(
        "", description="only these"
    )
    limit: Limit = 100
    offset: Offset = 0


class FeedParameters(Parameters):
    """Which feeds to list; empty means all."""

    q: Short = Field("", description="part of the address or title")
    group: Short = Field("", description="only this group")
    status: Short = Field("", description="only this status")


class AttentionParameters(Parameters):
    """Queries to compare, and the articles that they are compared in."""

    queries: Shorts = Field((), alias="q", description="a query; repeatable")
    first_day: Day = Field("", alias="from", description="first day; by default the newest days")
    last_day: Day = Field("", alias="to", description="last day")
    languages: Shorts = Field((), alias="language", description="only these languages")
    domains: Shorts = Field((), alias="domain", description="only these domains")

    def options(self, *, newest: Sequence[str]) -> SearchOptions:
        """Return the options of the searches; `newest` are the days by default."""
        return SearchOptions(
            first_day=self.first_day or min(newest, default="0001-01-01"),
            last_day=self.last_day or max(newest, default="9999-12-31"),
            languages=self.languages,
            domains=self.domains,
            limit=1,
            facets=FACETS,
        )
