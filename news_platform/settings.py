"""Every setting of the platform, typed, with its environment variable; no other module names one.

`load_settings` reads a mapping once and returns frozen values. A wrong value or an unknown
`NEWS_PLATFORM_*` name raises a one-line ConfigError that names the variable and the remedy.
"""

import difflib
import json
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from news_platform.errors import ConfigError
from news_platform.setting_sections.features import (
    CcnewsSettings,
    CorpusSettings,
    DomainMetadataSettings,
    DomainStoreSettings,
    NewsroomSettings,
    RetentionSettings,
    RssSettings,
    SearchSettings,
    SheetsSettings,
    SourceRecordsSettings,
)
from news_platform.setting_sections.fields import Section
from news_platform.setting_sections.platform import (
    AlertSettings,
    CheckSettings,
    ClusterSettings,
    CrawlStorageSettings,
    GeneralSettings,
    LogSettings,
    ServerSettings,
    StorageSettings,
    UiSettings,
    WebSettings,
)

# Shorter parts of a secret, such as `5` of `?connect_timeout=5`, would blot out innocent text.
_SHORTEST_PART = 5
PREFIX = "NEWS_PLATFORM_"
# Variables with the secrets of feeds and of saved queries, which their settings name.
FEED_SECRET_PREFIX = "FEED_SECRET_"
_NAMED_SECRETS = (FEED_SECRET_PREFIX, "ALERT_WEBHOOK_")


class Settings(GeneralSettings):
    """All settings: the general ones, then one section per feature."""

    storage: StorageSettings = StorageSettings()
    crawl_storage: CrawlStorageSettings = CrawlStorageSettings()
    web: WebSettings = WebSettings()
    ccnews: CcnewsSettings = CcnewsSettings()
    domain_store: DomainStoreSettings = DomainStoreSettings()
    domain_metadata: DomainMetadataSettings = DomainMetadataSettings()
    rss: RssSettings = RssSettings()
    sheets: SheetsSettings = SheetsSettings()
    newsroom: NewsroomSettings = NewsroomSettings()
    source_records: SourceRecordsSettings = SourceRecordsSettings()
    corpus: CorpusSettings = CorpusSettings()
    search: SearchSettings = SearchSettings()
    retention: RetentionSettings = RetentionSettings()
    alerts: AlertSettings = AlertSettings()
    checks: CheckSettings = CheckSettings()
    ui: UiSettings = UiSettings()
    server: ServerSettings = ServerSettings()
    cluster: ClusterSettings = ClusterSettings()
    logs: LogSettings = LogSettings()


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One row of the settings table in the docs."""

    section: str
    env: str
    default: str
    help: str


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read all settings from these variables; raise ConfigError on the first wrong one."""
    _refuse_unknown(environ)
    loaded: dict[str, Any] = dict(_load(GeneralSettings, environ))
    return Settings(**loaded | {name: _load(kind, environ) for name, kind in _sections()})


def setting_infos() -> tuple[SettingInfo, ...]:
    """Return a description of every variable, in the order of definition, for the docs."""
    infos: dict[str, SettingInfo] = {}
    for section, item in _variables():
        variable, default = str(item.validation_alias), item.default
        shown = ",".join(default) if isinstance(default, tuple) else str(default or "")
        # Some variables set a field of several sections: the first one describes them.
        infos.setdefault(variable, SettingInfo(section, variable, shown, item.description or ""))
    return tuple(infos.values())


def _variables() -> Iterator[tuple[str, FieldInfo]]:
    """Yield the fields that are read from a variable, each with the name of its section."""
    kinds: list[tuple[str, type[Section]]] = [("general", GeneralSettings), *_sections()]
    for section, kind in kinds:
        for item in kind.model_fields.values():
            if item.validation_alias is not None:
                yield section, item


def environment_secrets(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets in these variables, also if the settings cannot be loaded."""
    named = [environ.get(str(item.validation_alias)) for _, item in _variables() if not item.repr]
    # Feeds and saved queries name further ones, which are not settings themselves.
    named += [value for name, value in environ.items() if name.startswith(_NAMED_SECRETS)]
    return _with_parts(filter(None, named))


def server_addresses(dagster_url: str, server_url: str) -> dict[str, str]:
    """Return the variables by which the Dagster UI and the explorer link to each other."""
    fields = ServerSettings.model_fields
    named = {"dagster_url": dagster_url, "url": server_url}
    return {str(fields[name].validation_alias): value for name, value in named.items()}


_Kind = TypeVar("_Kind", bound=Section)


def _load(kind: type[_Kind], environ: Mapping[str, str]) -> _Kind:
    """Read one section; what is unset or empty keeps its default."""
    source = EnvSettingsSource(kind, case_sensitive=True)
    # Only these: the source also takes a variable that has the name of a field, such as `root`.
    aliases = (item.validation_alias for item in kind.model_fields.values())
    variables = [name for name in aliases if isinstance(name, str)]
    source.env_vars = {name: environ[name] for name in variables if environ.get(name)}
    try:
        return kind(**source())
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        name, wanted = str(found["loc"][0]), found["type"].partition("_")[0]
        message = f"{name}={environ[name]!r} is not of type {wanted}"
        if wanted == "literal":
            message = f"{name}={environ[name]!r}: expected {found['ctx']['expected']}"
        raise ConfigError(message, thing=name) from error


def _sections() -> Iterator[tuple[str, type[Section]]]:
    for name, item in Settings.model_fields.items():
        if isinstance(item.annotation, type) and issubclass(item.annotation, Section):
            yield name, item.annotation


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = [info.env for info in setting_infos()]
    for name in sorted(name for name in environ.keys() - known if name.startswith(PREFIX)):
        close = difflib.get_close_matches(name, known, n=1)
        cure = f"did you mean {close[0]}?" if close else "see docs/settings.md for all names"
        raise ConfigError(f"unknown setting {name}: {cure}", thing=name)


def _with_parts(secrets: Iterable[str]) -> frozenset[str]:
    given = set(secrets)
    parts = {part for text in given for part in (*_url_parts(text), *_json_parts(text))}
    return frozenset(given | {part for part in parts if len(part) >= _SHORTEST_PART})


def _url_parts(text: str) -> Iterator[str]:
    """Yield the password of a URL and the values of its options, encoded and decoded."""
    try:
        url = urllib.parse.urlsplit(text)
        found = [url.password or "", *(value for _, value in urllib.parse.parse_qsl(url.query))]
    except ValueError:  # not a URL, so there is no password inside
        return
    for part in found:
        yield from (part, urllib.parse.unquote(part), urllib.parse.quote(part))


def _json_parts(text: str) -> Iterator[str]:
    """Yield the keys inside the text of a service account."""
    try:
        document = json.loads(text)
    except ValueError:  # not JSON
        return
    if isinstance(document, dict):
        yield from (str(value) for name, value in document.items() if "private_key" in name)
