"""An RSL 1.0 document in, its licence terms as statements about use out."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from lxml import etree

from news_platform.domain_metadata.signals.statements import (
    EVERYWHERE,
    RSL_USES,
    UseStatement,
    raw_text,
)

NAMESPACE = "https://rslstandard.org/rsl"
MAX_BYTES = 1024 * 1024
_MAX_CONTENTS = 1000
_KNOWN = frozenset(
    (
        "rsl",
        "content",
        "license",
        "permits",
        "prohibits",
        "payment",
        "legal",
        "reporting",
        "schema",
        "copyright",
        "terms",
        "standard",
        "custom",
        "amount",
        "alternate",
        "accepts",
    )
)
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
        if _is_ours(node) and _name(node) not in _KNOWN
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
        root = etree.fromstring(body[:MAX_BYTES], parser)
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
    for label, (value, flags) in _terms(licenses).items():
        raw = raw_text(_raw(content))
        yield UseStatement(
            "rsl", source, raw, label, value, path=path, flags=(*flags, *needs_token)
        )


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
    return etree.QName(node).namespace in (NAMESPACE, None)


def _name(node: etree._Element) -> str:
    return str(etree.QName(node).localname)


def _children(node: etree._Element, name: str) -> list[etree._Element]:
    return [one for one in node.iterchildren(etree.Element) if _is_ours(one) and _name(one) == name]


def _raw(node: etree._Element) -> str:
    return str(etree.tostring(node, encoding="unicode", with_tail=False))
