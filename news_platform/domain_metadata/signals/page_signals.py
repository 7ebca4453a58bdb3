"""The headers and the HTML of a page in, its statements about use out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from resiliparse.parse.html import DOMNode, HTMLTree

from news_platform.datasets.domain_metadata import UseStatement
from news_platform.domain_metadata.signals.robots_signals import (
    parse_content_signal,
    parse_content_usage,
)
from news_platform.domain_metadata.signals.statements import (
    EVERYWHERE,
    HOME_PAGE,
    System,
    raw_text,
)
from news_platform.domain_metadata.signals.well_known import parse_rsl
from news_platform.html.links import join_link

RSL_TYPE = "application/rsl+xml"
Headers = Mapping[str, Sequence[str]]
"""Header lines by lower-case name."""

# Rules with a colon of their own; any other word before a colon names a crawler.
_WITH_COLON = ("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after")
_AGENT = re.compile(r"\s*([A-Za-z0-9_*.-]{1,80})\s*:(.*)", re.DOTALL)
# The date of this rule may contain a comma: it ends at the end of the text.
_UNAVAILABLE = re.compile(r"\bunavailable_after\s*:.*", re.IGNORECASE | re.DOTALL)
_META_AGENTS = ("robots", "googlebot", "googlebot-news", "bingbot", "applebot")
# A target and its parameters, which reach to the next target.
_LINK = re.compile(r"<([^<>]*)>([^<]*)")


def parse_header_signals(headers: Headers, *, url: str) -> list[UseStatement]:
    """Return the statements in the headers of a response; they speak about that page only."""
    found: list[UseStatement] = []
    for line in headers.get("x-robots-tag", ()):
        found += _robots_tag(line, source=f"{url} X-Robots-Tag")
    usage = headers.get("content-usage", ())
    if usage:
        # RFC 9651: the lines of a field are joined before they are parsed.
        text, source = ", ".join(usage), f"{url} Content-Usage"
        found += parse_content_usage(text, source=source, path=HOME_PAGE)
    for line in headers.get("content-signal", ()):
        found += parse_content_signal(line, source=f"{url} Content-Signal", path=HOME_PAGE)
    found += _tdm_headers(headers, source=url)
    found += _license_links(headers.get("link", ()), url=url)
    return found


def parse_html_signals(tree: HTMLTree, *, url: str) -> list[UseStatement]:
    """Return the statements in the meta, link and script elements of a page."""
    root = tree.document
    if root is None:
        return []
    found = list(_meta_signals(root, url=url))
    for node in root.get_elements_by_tag_name("link"):
        if (node.getattr("type") or "").strip().lower() == RSL_TYPE and "license" in (
            node.getattr("rel") or ""
        ).lower().split():
            href = node.getattr("href") or ""
            found.append(_license_link(href, url=url, source=f"{url} <link rel=license>"))
    for node in root.get_elements_by_tag_name("script"):
        if (node.getattr("type") or "").strip().lower() == RSL_TYPE:
            terms = parse_rsl(node.text.strip().encode(), source=f"{url} <script>")
            # Lines are counted from the start of the element, not of the page.
            found += [replace(one, line=None) for one in terms]
    return found


def _meta_signals(root: DOMNode, *, url: str) -> Iterator[UseStatement]:
    policy = ""
    for node in root.get_elements_by_tag_name("meta"):
        name = (node.getattr("name") or "").strip().lower()
        content = node.getattr("content") or ""
        source = f'{url} <meta name="{name}">'
        if name in _META_AGENTS:
            agents = () if name == "robots" else (name,)
            yield from _rules(content, system="robots_meta", source=source, agents=agents)
        elif name == "tdm-reservation":
            yield _reservation(content, source=source)
        elif name == "tdm-policy":
            policy = content
    if policy:
        source = f'{url} <meta name="tdm-policy">'
        yield UseStatement("tdmrep", source, raw_text(policy), "tdm-policy", policy, path=HOME_PAGE)


def _robots_tag(line: str, *, source: str) -> list[UseStatement]:
    """Return the rules of one header line; a crawler named first is bound by the whole line."""
    named = _AGENT.match(line)
    if named and named.group(1).lower() not in _WITH_COLON:
        agents, flags = (named.group(1).lower(),), ("named_crawler",)
        return _rules(
            named.group(2), system="robots_tag", source=source, agents=agents, flags=flags
        )
    return _rules(line, system="robots_tag", source=source)


def _rules(
    text: str,
    *,
    system: System,
    source: str,
    agents: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> list[UseStatement]:
    raw = raw_text(text.strip())
    dated = _UNAVAILABLE.findall(text)
    parts = chain(_UNAVAILABLE.sub("", text).split(","), dated)
    labels = dict.fromkeys(part.strip().lower() for part in parts if part.strip())
    return [
        UseStatement(system, source, raw, label, value or "yes", agents, HOME_PAGE, flags)
        for label, value in map(_label_and_value, labels)
    ]


def _label_and_value(rule: str) -> tuple[str, str]:
    label, _, value = rule.partition(":")
    return label.strip(), value.strip()


def _tdm_headers(headers: Headers, *, source: str) -> Iterator[UseStatement]:
    for line in headers.get("tdm-reservation", ()):
        yield _reservation(line, source=f"{source} TDM-Reservation")
    for line in headers.get("tdm-policy", ()):
        raw = raw_text(line)
        where = f"{source} TDM-Policy"
        yield UseStatement("tdmrep", where, raw, "tdm-policy", line.strip(), path=HOME_PAGE)


def _reservation(text: str, *, source: str) -> UseStatement:
    value = text.strip() if text.strip() in ("0", "1") else None
    flags = () if value else ("unknown_value",)
    raw = raw_text(text)
    return UseStatement(
        "tdmrep", source, raw, "tdm-reservation", value, path=HOME_PAGE, flags=flags
    )


def _license_links(lines: Sequence[str], *, url: str) -> Iterator[UseStatement]:
    for target, parameters in chain.from_iterable(_LINK.findall(line) for line in lines):
        plain = parameters.lower().replace('"', "").replace(" ", "")
        if "rel=license" in plain and f"type={RSL_TYPE}" in plain:
            yield _license_link(target, url=url, source=f"{url} Link")


def _license_link(target: str, *, url: str, source: str) -> UseStatement:
    link = join_link(url, target)
    value = link if link.lower().startswith(("https://", "http://")) else None
    return UseStatement("rsl", source, raw_text(target), "license", value, path=EVERYWHERE)
