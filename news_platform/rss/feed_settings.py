"""The settings of one feed, as JSON in its row: rhythm, limits, identity, secrets by name."""

import base64
from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from news_platform.errors import ConfigError, InputError

# A secret of a feed can be any variable of this name, and no other: whoever may edit feeds must
# not be able to send the platform's own passwords to a server of theirs.
SECRET_PREFIX = "FEED_SECRET_"
# Set by the fetcher, or able to change which page is answered to whom.
_OUR_HEADERS = frozenset(
    ("host", "content-length", "connection", "accept-encoding", "transfer-encoding")
)


class FeedSettings(BaseModel):
    """What a person set for one feed; the default of each field means "as all feeds"."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    interval_seconds: int = Field(default=0, ge=0, le=30 * 86_400)
    max_items: int = Field(default=0, ge=0)
    language: str = ""
    user_agent: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    # Names of variables: `user:password` for basic authentication, or a bearer token.
    basic_auth: str = ""
    token: str = ""
    body_selector: str = ""
    feed_text_is_enough: bool = False

    @field_validator("basic_auth", "token")
    @classmethod
    def _is_secret_name(cls, name: str) -> str:
        if name and not name.startswith(SECRET_PREFIX):
            raise ValueError(f"expected the name of a variable that starts with {SECRET_PREFIX}")
        return name

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            is_token = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
            if name.lower() in ("authorization", "proxy-authorization"):
                raise ValueError(
                    f"{name} holds a secret: name its variable, as basic_auth or token"
                )
            if not is_token or name.lower() in _OUR_HEADERS or not value.isprintable():
                raise ValueError(f"invalid header {name!r}")
        return headers

    @field_validator("user_agent")
    @classmethod
    def _is_printable(cls, text: str) -> str:
        if not text.isprintable():
            raise ValueError("expected one line of text")
        return text


_DEFAULT = FeedSettings()


def feed_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the settings of feeds may name."""
    return {name: value for name, value in environ.items() if name.startswith(SECRET_PREFIX)}


def first_problem(error: ValidationError) -> str:
    """Return the first thing that is wrong with what a person wrote: where, and what."""
    found = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, found["loc"])) or "JSON"
    # What our own checks say comes with this prefix.
    return f"{where}: {found['msg'].removeprefix('Value error, ')}"


def parse_settings(text: str) -> FeedSettings:
    """Return the settings of a feed's row; '' means that it has none of its own.

    Raise InputError if a person wrote something else into the ledger.
    """
    if not text:
        return _DEFAULT
    try:
        return FeedSettings.model_validate_json(text)
    except ValidationError as error:
        raise InputError(f"invalid settings of a feed: {first_problem(error)}") from error


def settings_text(settings: FeedSettings) -> str:
    """Return the JSON for the row of a feed; '' if all fields have their default."""
    return settings.model_dump_json(exclude_defaults=True) if settings != _DEFAULT else ""


def private_headers(settings: FeedSettings, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the headers for the feed's own host; raise ConfigError if a secret is not set."""
    headers = dict(settings.headers)
    if settings.user_agent:
        headers["User-Agent"] = settings.user_agent
    if settings.basic_auth:
        login = _secret(settings.basic_auth, secrets).encode()
        headers["Authorization"] = f"Basic {base64.b64encode(login).decode('ascii')}"
    elif settings.token:
        headers["Authorization"] = f"Bearer {_secret(settings.token, secrets)}"
    return headers


def page_headers(
    settings: FeedSettings, secrets: Mapping[str, str], *, feed_url: str, url: str
) -> dict[str, str]:
    """Return the headers for an article: those of its feed if both are on one host, else none."""
    if settings == _DEFAULT or urlsplit(feed_url).hostname != urlsplit(url).hostname:
        return {}
    # A login must not leave an encrypted connection.
    if urlsplit(feed_url).scheme == "https" != urlsplit(url).scheme:
        return {}
    return private_headers(settings, secrets)


def _secret(name: str, secrets: Mapping[str, str]) -> str:
    value = secrets.get(name, "")
    if not value or not value.isprintable():
        raise ConfigError(f"the feed's secret {name} is not set: set this variable", thing=name)
    return value
