"""A parsed robots.txt in, its statements about use out: Content-Signal, Content-Usage, License."""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from news_platform.datasets.domain_metadata import UseStatement
from news_platform.domain_metadata.signals.statements import (
    EVERYWHERE,
    raw_text,
)
from news_platform.web.robots import Robots, UseLine, product_token

_OWS = r"[ \t]*"
_KEY = r"[a-z*][a-z0-9_.*-]*"
_TOKEN = r"[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*"
_STRING = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
_NUMBER = r"-?(?:[0-9]{1,12}\.[0-9]{1,3}|[0-9]{1,15})"
_BYTES = r":[A-Za-z0-9+/=]*:"
_DATE = r"@-?[0-9]{1,15}"
_DISPLAY = r'%"(?:[ !#$&-~]|%[0-9a-f]{2})*"'
_BARE = rf"(?:\?[01]|{_NUMBER}|{_STRING}|{_BYTES}|{_DATE}|{_DISPLAY}|{_TOKEN})"
_PARAMETERS = rf"(?:;[ ]*{_KEY}(?:={_BARE})?)*"
_INNER_LIST = rf"\([ ]*(?:{_BARE}{_PARAMETERS}(?:[ ]+{_BARE}{_PARAMETERS})*[ ]*)?\)"
_MEMBER = re.compile(
    rf"(?P<key>{_KEY})(?:=(?:(?P<token>{_TOKEN})|{_BARE}|{_INNER_LIST}))?{_PARAMETERS}"
)
_SEPARATOR = re.compile(rf"{_OWS},{_OWS}")


def parse_dictionary(text: str) -> dict[str, str | None] | None:
    """Return the members of a Dictionary, or None if the text is not one.

    A value is its token, or None if it is of another type. The last of two equal keys counts.
    """
    text = text.strip(" ")
    found: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        member = _MEMBER.match(text, at)
        if member is None:
            return None
        # RFC 9651: a repeated key keeps the value of its last occurrence.
        found[member["key"]] = member["token"]
        at = member.end()
        if at == len(text):
            return found
        separator = _SEPARATOR.match(text, at)
        if separator is None or separator.end() == len(text):
            return None  # no comma between two members, or a comma after the last
        at = separator.end()
    return found


_MANAGED = re.compile(rb"#[ \t]*BEGIN Cloudflare Managed content", re.IGNORECASE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SIGNALS = frozenset({"search", "ai-input", "ai-train"})
_USE_VALUES = frozenset({"immediate", "reference", "full"})
# Not values of the policy, but sites write them: a refusal is understood, a grant is not.
_REFUSALS = frozenset({"no", "disallow", "disallowed", "deny", "false", "0", "n"})
_USAGE_LABELS = frozenset({"search", "ai-use", "train-ai"})
_USAGE_VALUES = frozenset({"y", "n"})
_PATH_END = re.compile(r"[ \t]")


class RobotsSignals(NamedTuple):
    """The statements of a robots.txt, the licence URLs it names, and what is unusual about it."""

    statements: tuple[UseStatement, ...]
    managed: bool = False
    utf_16: bool = False


def parse_robots_signals(body: bytes, *, source: str, rules: Robots | None = None) -> RobotsSignals:
    """Return the statements about use of a robots.txt; `rules` is its parsed form, if known."""
    utf_16 = body.startswith(_UTF_16)
    if utf_16:
        # Crawlers read such a file as noise, so its access rules do not count; its wishes do.
        body, rules = body.decode("utf-16", "replace").encode(), None
    parsed = Robots.parse(body) if rules is None else rules
    if not parsed.uses and not any(group.uses for group in parsed.groups):
        return RobotsSignals((), _is_managed(body), utf_16)
    extra = ("utf_16",) if utf_16 else ()
    found = list(_outside_groups(parsed.uses, source=source, extra=extra))
    for group in parsed.groups:
        agents = tuple(sorted(group.agents))
        for line in group.uses:
            found += _line(line, source=source, agents=agents, extra=extra)
    return RobotsSignals(tuple(found), _is_managed(body), utf_16)


def parse_content_signal(
    text: str, *, source: str, agents: tuple[str, ...] = (), path: str = EVERYWHERE
) -> list[UseStatement]:
    """Return the statements of one Content-Signal value; keys and values ignore case."""
    values: dict[str, list[str]] = {}
    for part in text.lower().split(","):
        label, _, value = part.partition("=")
        if label.strip():
            values.setdefault(label.strip(), []).append(value.strip())
    return [
        _signal(label, given, raw=text, source=source, agents=agents, path=path)
        for label, given in values.items()
    ]


def parse_content_usage(
    text: str, *, source: str, agents: tuple[str, ...] = (), path: str = EVERYWHERE
) -> list[UseStatement]:
    """Return the statements of one Content-Usage Dictionary (AIPREF)."""
    members = parse_dictionary(text)
    raw = raw_text(text)
    if members is None:
        return [
            UseStatement(
                "content_usage", source, raw, "", None, agents, path, flags=("syntax_error",)
            )
        ]
    return [
        UseStatement(
            "content_usage",
            source,
            raw,
            label,
            value if label in _USAGE_LABELS and value in _USAGE_VALUES else None,
            agents,
            path,
            flags=() if label in _USAGE_LABELS else ("unknown_label",),
        )
        for label, value in members.items()
    ]


def license_urls(statements: Iterable[UseStatement], agent: str) -> list[str]:
    """Return the licence URLs for an agent; those of its group replace the global ones.

    A page that carries a licence adds it to what robots.txt says.
    """
    links = [one for one in statements if one.system == "rsl" and one.label == "license"]
    named = [one for one in links if {agent.lower(), product_token(agent)} & {*one.agents}]
    everyone = [one for one in links if "*" in one.agents]
    whole = [one for one in links if not one.agents]
    chosen = named or everyone
    # The source of a header or element is the URL, a blank and its name.
    chosen += [one for one in whole if not chosen or " " in one.source]
    return list(dict.fromkeys(one.value for one in chosen if one.value))


def _is_managed(body: bytes) -> bool:
    return _MANAGED.search(body) is not None


def _outside_groups(
    lines: Iterable[UseLine], *, source: str, extra: tuple[str, ...]
) -> Iterator[UseStatement]:
    for line in lines:
        if line.key == "content-usage":
            # AIPREF defines the line only inside a group.
            raw = raw_text(line.value)
            flags = ("outside_group", *extra)
            yield UseStatement("content_usage", source, raw, "", flags=flags, line=line.line)
        else:
            flags = extra if line.key == "license" else ("outside_group", *extra)
            yield from _line(line, source=source, agents=(), extra=flags)


def _line(
    line: UseLine, *, source: str, agents: tuple[str, ...], extra: tuple[str, ...]
) -> list[UseStatement]:
    if line.key == "content-signal":
        found = parse_content_signal(line.value, source=source, agents=agents)
    elif line.key == "content-usage":
        found = _usage_rule(line.value, source=source, agents=agents)
    else:
        found = [_license(line.value, source=source, agents=agents)]
    return [replace(one, flags=(*one.flags, *extra), line=line.line or None) for one in found]


def _usage_rule(text: str, *, source: str, agents: tuple[str, ...]) -> list[UseStatement]:
    """Return the statements of a Content-Usage line, which may begin with a path."""
    if not text.startswith("/"):
        return parse_content_usage(text, source=source, agents=agents)
    path, *rest = _PATH_END.split(text, maxsplit=1)
    if not rest:
        raw = raw_text(text)
        flags = ("path_without_statement",)
        return [UseStatement("content_usage", source, raw, "", None, agents, path, flags)]
    return parse_content_usage(rest[0].strip(" \t"), source=source, agents=agents, path=path)


def _license(text: str, *, source: str, agents: tuple[str, ...]) -> UseStatement:
    absolute = text.lower().startswith(("https://", "http://")) and not re.search(r"\s", text)
    flags = () if absolute else ("not_an_absolute_url",)
    value = text if absolute else None
    return UseStatement("rsl", source, raw_text(text), "license", value, agents, flags=flags)


def _signal(
    label: str,
    given: list[str],
    *,
    raw: str,
    source: str,
    agents: tuple[str, ...],
    path: str,
) -> UseStatement:
    read = [_signal_value(label, value) for value in given]
    values = {value for value, _ in read if value is not None}
    flags = {flag for _, flag in read if flag}
    if len(values) > 1:
        flags.add("conflict")
    return UseStatement(
        "content_signal",
        source,
        raw_text(raw),
        label,
        _strictest(values),
        agents,
        path,
        tuple(sorted(flags)),
    )


def _signal_value(label: str, value: str) -> tuple[str | None, str]:
    """Return the meaning of a value and a flag if it is not one that the policy defines."""
    if label == "use":
        return (value, "") if value in _USE_VALUES else (None, "unknown_value")
    if label not in _SIGNALS:
        return None, "unknown_label"
    if value in ("yes", "no"):
        return value, ""
    return ("no" if value in _REFUSALS else None), "unknown_value"


def _strictest(values: set[str]) -> str | None:
    for value in ("no", "immediate", "reference", "full", "yes"):
        if value in values:
            return value
    return None
