"""The files of a site in, their statements out: tdmrep.json, ai.txt, trust.txt, RSL licences."""

import json
import re
from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

from lxml import etree

from news_platform.datasets.domain_metadata import UseStatement
from news_platform.domain_metadata.signals.statements import (
    EVERYWHERE,
    RSL_USES,
    System,
    raw_text,
)

_MAX_RULES = 1000
_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml|!--)", re.IGNORECASE)
_FIELD = re.compile(r"\s*([A-Za-z-]+)\s*:\s*(.*?)\s*(?:#.*)?$")
_H1 = re.compile(r"^#[ \t]+\S", re.MULTILINE)


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
    for number, line in enumerate(text.splitlines(), 1):
        match = _FIELD.match(line)
        key, value = (match.group(1).lower(), match.group(2)) if match else ("", "")
        if key == "user-agent":
            # Spawning's own plugin writes `*/` for all crawlers.
            name = value.rstrip("/").lower()
            agents = () if name == "*" else (name,)
        elif key in ("disallow", "allow") and value:
            pattern = value if value.startswith(("/", "*")) else f"/{value}"
            raw = raw_text(line.strip())
            found.append(
                UseStatement("ai_txt", source, raw, key, "yes", agents, pattern, line=number)
            )
        elif key and not line.lstrip().startswith("#"):
            raw = raw_text(line.strip())
            flags = ("unknown_format",)
            found.append(UseStatement("ai_txt", source, raw, key, flags=flags, line=number))
    return found[:_MAX_RULES]


def parse_trust_txt(body: bytes, *, source: str) -> list[UseStatement]:
    """Return the `datatrainingallowed` line of a trust.txt; a conflict counts as no."""
    text = decoded(body)
    if _MARKUP.match(text):
        return [_unreadable("trust_txt", source, body)]
    lines = [line.strip() for line in text.splitlines()]
    stated = [line for line in lines if line.lower().startswith("datatrainingallowed=")]
    first = lines.index(stated[0]) + 1 if stated else None
    values = {line.partition("=")[2].partition("#")[0].strip().lower() for line in stated}
    if not values:
        return []
    known = values & {"yes", "no"}
    value = "no" if "no" in known else next(iter(known), None)
    flags = ("conflict",) if len(values) > 1 else ()
    if not known:
        flags = ("unknown_value",)
    raw = raw_text("\n".join(stated))
    label = "datatrainingallowed"
    return [UseStatement("trust_txt", source, raw, label, value, flags=flags, line=first)]


def is_llms_txt(body: bytes) -> bool:
    """Return whether a file is an llms.txt: Markdown with a first heading."""
    text = decoded(body)
    return not _MARKUP.match(text) and _H1.search(text) is not None


def security_contacts(body: bytes) -> list[str]:
    """Return the first contacts of a security.txt (RFC 9116); without one it is invalid."""
    contacts = [
        raw_text(match.group(1))
        for line in decoded(body).splitlines()
        if (match := re.match(r"\s*contact\s*:\s*(\S.*?)\s*$", line, re.IGNORECASE))
    ]
    return contacts[:10]


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


_RSL_NAMESPACE = "https://rslstandard.org/rsl"
_MAX_RSL_BYTES = 1024 * 1024
_MAX_CONTENTS = 1000
_RSL_ELEMENTS_LIST = """
rsl content license permits prohibits payment legal reporting schema copyright terms standard custom
amount alternate accepts
"""
_RSL_ELEMENTS = frozenset(_RSL_ELEMENTS_LIST.split())
# Payments that cost nothing: using the content under them is licensed.
_FREE = frozenset({"free", "attribution"})


def parse_rsl(body: bytes, *, source: str) -> list[UseStatement]:
    """Return the terms of a licence document; one that is not RSL gives one flagged statement."""
    root = _parse(body)
    if root is None or _name(root) != "rsl":
        return [_invalid(source, "not_rsl", raw=body[:200].decode("utf-8", "replace"))]
    unknown = [
        _name(node)
        for node in root.iter(etree.Element)
        if _is_ours(node) and _name(node) not in _RSL_ELEMENTS
    ]
    if unknown:
        # §3: an unknown element in RSL's own namespace makes the document non-conformant.
        return [_invalid(source, "unknown_element", raw=f"<{unknown[0]}>")]
    found: list[UseStatement] = []
    for content in _children(root, "content")[:_MAX_CONTENTS]:
        found += _content(content, source=source)
    return found or [_invalid(source, "no_license", raw="")]


def _parse(body: bytes) -> etree._Element | None:
    # No DTD, entities or network: the document comes from a stranger.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    try:
        root = etree.fromstring(body[:_MAX_RSL_BYTES], parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    # `internalDTD` is set for any DOCTYPE, which no licence document needs.
    return root if root.getroottree().docinfo.internalDTD is None else None


def _content(content: etree._Element, *, source: str) -> Iterator[UseStatement]:
    path = _path(content.get("url") or "")
    licenses = _children(content, "license")
    if not licenses:
        yield _invalid(source, "content_without_license", raw=_raw(content), path=path)
    needs_token = ("token_required",) if content.get("server") else ()
    raw, line = raw_text(_raw(content)), cast(int | None, content.sourceline)
    for label, (value, flags) in _terms(licenses).items():
        flags = (*flags, *needs_token)
        yield UseStatement("rsl", source, raw, label, value, path=path, flags=flags, line=line)


def _terms(licenses: list[etree._Element]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the value of each use; licences are alternatives, and a prohibition beats them."""
    permitted: dict[str, str] = {}
    prohibited: set[str] = set()
    flags: set[str] = set()
    closed = False
    for one in licenses:
        value = _permission(one)
        for node in _children(one, "permits"):
            uses = _uses(node, flags)
            if uses is not None:
                closed = True
                permitted.update({use: value for use in uses if permitted.get(use) != "permitted"})
        for node in _children(one, "prohibits"):
            prohibited.update(_uses(node, flags) or ())
    return _values(permitted, prohibited, closed=closed, flags=tuple(sorted(flags)))


def _permission(license_: etree._Element) -> str:
    """Return what a permission of this licence is worth: free, to be paid, or limited."""
    kinds = {(node.get("type") or "").lower() for node in _children(license_, "permits")}
    if kinds & {"user", "geo"}:
        return "limited"
    payments = [(node.get("type") or "").lower() for node in _children(license_, "payment")]
    return "permitted" if not payments or _FREE.intersection(payments) else "payment"


def _values(
    permitted: dict[str, str], prohibited: set[str], *, closed: bool, flags: tuple[str, ...]
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return one value per basic use; the tokens that cover others are resolved here."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for use in ("search", "ai-input", "ai-train", "ai-index"):
        covering = _covering(use)
        if prohibited.intersection(covering):
            found[use] = ("prohibited", flags)
        elif value := next((permitted[token] for token in covering if token in permitted), None):
            found[use] = (value, flags)
        elif closed and use != "ai-index":
            # A list without `ai-index` says nothing that `ai-input` does not say better.
            found[use] = ("not_listed", flags)
    return found


def _covering(use: str) -> tuple[str, ...]:
    """Return the tokens that include a use, the narrowest first."""
    return (use, "ai-all", "all") if use.startswith("ai-") else (use, "all")


def _uses(node: etree._Element, flags: set[str]) -> list[str] | None:
    """Return the usage tokens of a list, or None if it is a list of users or countries."""
    kind = (node.get("type") or "").strip().lower()
    text = " ".join(map(str, node.itertext()))
    if kind in RSL_USES:
        flags.add("use_as_type")  # `<permits type="ai-train"/>`
        return [kind]
    if kind not in ("usage", ""):
        return None
    if "," in text:
        flags.add("comma_list")  # the habit of RSL 0.9
    tokens = text.replace(",", " ").split()
    if any(token not in RSL_USES for token in tokens):
        flags.add("unknown_use")
    return [token for token in tokens if token in RSL_USES]


def _path(url: str) -> str:
    """Return the path pattern of a content URL."""
    if url.startswith("/"):
        return url
    if not url:
        return EVERYWHERE
    try:
        parts = urlsplit(url)
    except ValueError:
        return EVERYWHERE
    return f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"


def _invalid(source: str, flag: str, *, raw: str, path: str = EVERYWHERE) -> UseStatement:
    return UseStatement("rsl", source, raw_text(raw), "document", None, path=path, flags=(flag,))


def _is_ours(node: etree._Element) -> bool:
    return etree.QName(node).namespace in (_RSL_NAMESPACE, None)


def _name(node: etree._Element) -> str:
    return str(etree.QName(node).localname)


def _children(node: etree._Element, name: str) -> list[etree._Element]:
    return [one for one in node.iterchildren(etree.Element) if _is_ours(one) and _name(one) == name]


def _raw(node: etree._Element) -> str:
    return str(etree.tostring(node, encoding="unicode", with_tail=False))
