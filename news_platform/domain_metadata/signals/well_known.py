"""The small files of a site in, their statements out: tdmrep.json, ai.txt, trust.txt, others."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from news_platform.domain_metadata.signals.statements import (
    EVERYWHERE,
    System,
    UseStatement,
    raw_text,
)

_MAX_RULES = 1000
_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml|!--)", re.IGNORECASE)
_FIELD = re.compile(r"\s*([A-Za-z-]+)\s*:\s*(.*?)\s*(?:#.*)?$")
_H1 = re.compile(r"^#[ \t]+\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileSummary:
    """A file that makes no statement about use: what is kept of it."""

    size_bytes: int
    sha256: str
    is_valid: bool
    values: tuple[str, ...] = ()


def parse_tdmrep(body: bytes, *, source: str) -> list[UseStatement]:
    """Return the rules of `/.well-known/tdmrep.json`, in the order of the file."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return [_unreadable("tdmrep", source, body)]
    if not isinstance(document, list | dict):
        return [_unreadable("tdmrep", source, body)]
    rules = document if isinstance(document, list) else [document]
    flags = () if isinstance(document, list) else ("not_a_list",)
    return [
        statement
        for rule in rules[:_MAX_RULES]
        for statement in _tdm_rule(rule, source=source, flags=flags)
    ]


def parse_ai_txt(body: bytes, *, source: str) -> list[UseStatement]:
    """Return the Disallow and Allow lines of an ai.txt in Spawning's robots-like form."""
    text = decoded(body)
    if _MARKUP.match(text):
        return [_unreadable("ai_txt", source, body)]
    found: list[UseStatement] = []
    agents: tuple[str, ...] = ()
    for line in text.splitlines():
        match = _FIELD.match(line)
        key, value = (match.group(1).lower(), match.group(2)) if match else ("", "")
        if key == "user-agent":
            # Spawning's own plugin writes `*/` for all crawlers.
            name = value.rstrip("/").lower()
            agents = () if name == "*" else (name,)
        elif key in ("disallow", "allow") and value:
            pattern = value if value.startswith(("/", "*")) else f"/{value}"
            raw = raw_text(line.strip())
            found.append(UseStatement("ai_txt", source, raw, key, "yes", agents, pattern))
        elif key and not line.lstrip().startswith("#"):
            raw = raw_text(line.strip())
            flags = ("unknown_format",)
            found.append(UseStatement("ai_txt", source, raw, key, None, flags=flags))
    return found[:_MAX_RULES]


def parse_trust_txt(body: bytes, *, source: str) -> list[UseStatement]:
    """Return the `datatrainingallowed` line of a trust.txt; a conflict counts as no."""
    text = decoded(body)
    if _MARKUP.match(text):
        return [_unreadable("trust_txt", source, body)]
    lines = [line.strip() for line in text.splitlines()]
    stated = [line for line in lines if line.lower().startswith("datatrainingallowed=")]
    values = {line.partition("=")[2].partition("#")[0].strip().lower() for line in stated}
    if not values:
        return []
    known = values & {"yes", "no"}
    value = "no" if "no" in known else next(iter(known), None)
    flags = ("conflict",) if len(values) > 1 else ()
    if not known:
        flags = ("unknown_value",)
    raw = raw_text("\n".join(stated))
    return [UseStatement("trust_txt", source, raw, "datatrainingallowed", value, flags=flags)]


def summarize_llms_txt(body: bytes) -> FileSummary:
    """Return size and digest of an llms.txt; it is one if it is Markdown with a first heading."""
    text = decoded(body)
    is_valid = not _MARKUP.match(text) and _H1.search(text) is not None
    return FileSummary(len(body), hashlib.sha256(body).hexdigest(), is_valid)


def summarize_security_txt(body: bytes) -> FileSummary:
    """Return the contacts of a security.txt (RFC 9116)."""
    contacts = tuple(
        raw_text(match.group(2))
        for line in decoded(body).splitlines()
        if (match := re.match(r"\s*(contact)\s*:\s*(\S.*?)\s*$", line, re.IGNORECASE))
    )
    return FileSummary(len(body), hashlib.sha256(body).hexdigest(), bool(contacts), contacts[:10])


def decoded(body: bytes) -> str:
    """Return the text of a small file; a byte order mark selects UTF-16."""
    for mark in (b"\xff\xfe", b"\xfe\xff"):
        if body.startswith(mark):
            return body.decode("utf-16", "replace")
    return body.decode("utf-8-sig", "replace")


def _tdm_rule(rule: object, *, source: str, flags: tuple[str, ...]) -> Iterator[UseStatement]:
    raw = raw_text(json.dumps(rule, ensure_ascii=False))
    if not isinstance(rule, dict) or not isinstance(rule.get("location"), str):
        flags = (*flags, "no_location")
        yield UseStatement("tdmrep", source, raw, "tdm-reservation", None, flags=flags)
        return
    given = rule.get("tdm-reservation")
    # `true` equals 1 in Python, but it is not the number that the protocol asks for.
    value = str(given) if type(given) is int and given in (0, 1) else None
    path = str(rule["location"]) or EVERYWHERE
    if value is None:
        flags = (*flags, "unknown_value")
    yield UseStatement("tdmrep", source, raw, "tdm-reservation", value, path=path, flags=flags)
    policy = rule.get("tdm-policy")
    if value == "1" and isinstance(policy, str):
        yield UseStatement("tdmrep", source, raw, "tdm-policy", policy, path=path)


def _unreadable(system: System, source: str, body: bytes) -> UseStatement:
    raw = raw_text(body[:200].decode("utf-8", "replace"))
    return UseStatement(system, source, raw, "document", None, flags=("unreadable",))
