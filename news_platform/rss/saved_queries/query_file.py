"""Parse the TOML file of saved queries: `[[alerts]]` with words, sources, languages and topics."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from news_platform.errors import ConfigError
from news_platform.rss.feed_settings import first_problem
from news_platform.rss.text_query import TextQuery, searchable

DEFAULT_PATH = "alerts.toml"
# A webhook can be in any variable of this name, and in no other: whoever may edit the file must not
# be able to send the platform's own passwords anywhere.
VARIABLE_PREFIX = "ALERT_WEBHOOK_"
# In UTC: before editors in Europe begin, after those in America end.
_DIGEST_HOUR = 6
# It is a part of paths and of keys.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class SavedQuery(BaseModel):
    """One saved query; an article must meet every criterion that is given.

    Of `words` and `phrases` one is enough; of `all_of` every term must occur, of `none_of` none.
    Topics are the guessed category, the section or a tag.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    webhook: str = Field(default="", repr=False)
    webhook_variable: str = ""
    # One message per match, or one with all of an hour, or of a day until 06:00 UTC.
    digest: Literal["", "hourly", "daily"] = ""
    # What is posted: a document with the articles, or the form of Slack and its kin.
    format: Literal["plain", "slack"] = "plain"

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("expected lower-case letters, digits, - and _")
        return name

    @field_validator("words", "phrases", "all_of", "none_of")
    @classmethod
    def _are_terms(cls, terms: tuple[str, ...]) -> tuple[str, ...]:
        if len(searchable(terms)) != len(terms):
            raise ValueError("expected terms with at least one letter or digit")
        return terms

    @field_validator("webhook")
    @classmethod
    def _is_url(cls, url: str) -> str:
        if url and not url.startswith(("http://", "https://")):
            raise ValueError("expected an http(s):// URL")
        return url

    @field_validator("webhook_variable")
    @classmethod
    def _is_variable(cls, name: str) -> str:
        if name and not name.startswith(VARIABLE_PREFIX):
            raise ValueError(f"expected the name of a variable that starts with {VARIABLE_PREFIX}")
        return name

    @property
    def has_webhook(self) -> bool:
        """Return whether matches are posted."""
        return bool(self.webhook or self.webhook_variable)

    def due_until(self, now: datetime) -> datetime:
        """Return up to when matches are posted now: a digest holds those of whole hours or days."""
        if not self.digest:
            return now
        hour = now.replace(minute=0, second=0, microsecond=0)
        since_six = (hour.hour - _DIGEST_HOUR) % 24 if self.digest == "daily" else 0
        return hour - timedelta(hours=since_six)

    @property
    def text_query(self) -> TextQuery:
        """Return what the article must contain."""
        any_of = (*self.words, *self.phrases)
        return TextQuery(all_of=self.all_of, any_of=any_of, none_of=self.none_of)

    @property
    def has_criteria(self) -> bool:
        """Return whether it chooses anything; a query without criteria would match everything."""
        wanted = (self.words, self.phrases, self.all_of, self.sources, self.languages, self.topics)
        return any(wanted)


def parse_queries(text: str, *, thing: str) -> tuple[SavedQuery, ...]:
    """Return the saved queries of a file; raise ConfigError that names the wrong place in it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"cannot parse {thing!r} as TOML: {error}", thing=thing) from error
    entries = document.get("alerts", [])
    if not isinstance(entries, list) or set(document) - {"alerts"}:
        raise ConfigError(f"invalid {thing!r}: expected tables [[alerts]] and nothing else")
    queries = tuple(_parse_query(entry, n, thing=thing) for n, entry in enumerate(entries, 1))
    _refuse_doubled([query.name for query in queries], thing=thing)
    return queries


def _parse_query(entry: object, number: int, *, thing: str) -> SavedQuery:
    try:
        query = SavedQuery.model_validate(entry)
    except ValidationError as error:
        message = f"invalid alert {number} in {thing!r}: {first_problem(error)}"
        raise ConfigError(message, thing=thing) from error
    if not query.has_criteria:
        raise ConfigError(
            f"invalid alert {query.name!r} in {thing!r}: it matches every article; give it words, "
            "phrases, sources, languages or topics",
            thing=thing,
        )
    return query


def _refuse_doubled(names: Sequence[str], *, thing: str) -> None:
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise ConfigError(f"invalid {thing!r}: two alerts have the name {doubled[0]!r}")


def webhook_url(query: SavedQuery, variables: Mapping[str, str]) -> str:
    """Return where the matches of a query go; raise ConfigError if its variable is not set."""
    if not query.webhook_variable:
        return query.webhook
    url = variables.get(query.webhook_variable, "")
    if not url:
        raise ConfigError(f"{query.webhook_variable} is not set: set it to the URL of a webhook")
    return url


def webhook_secret(query: SavedQuery, variables: Mapping[str, str]) -> str:
    """Return what signs the messages of a query, from the variable beside that of the webhook."""
    return variables.get(f"{query.webhook_variable}_SECRET", "")


def webhook_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a file of saved queries may name, and their secrets."""
    return {name: text for name, text in environ.items() if name.startswith(VARIABLE_PREFIX)}
