"""Find the boilerplate of a page by structure and link density."""

import re
from collections import Counter
from collections.abc import Sequence

from news_platform.source_records.blocks import (
    PARAGRAPH,
    BlockDecision,
    Container,
    PageBlock,
    WalkedPage,
    content_chars,
)
from news_platform.source_records.options import BoilerplateRules

_BETWEEN_LINKS = re.compile(r" (?:[|/·•›»>~;]|--|::) ")
# Lower than BoilerplateRules.link_density: in a row of links the separators are not links.
_ROW_DENSITY = 0.6
# Widgets whose names the cards of a list may have, too.
_LISTED = frozenset(("account", "related", "share", "tags", "control", "feedback"))
# Widgets that stand beside the content and never around it.
_BOXES = frozenset(("account", "share", "subscribe"))


def drop_boilerplate(
    page: WalkedPage, decisions: Sequence[BlockDecision], rules: BoilerplateRules
) -> None:
    """Drop the blocks that are boilerplate."""
    _resolve_zones(page, rules)
    main = _main_share(page.blocks)
    has_main = main > rules.main_share
    outside = f"main holds {main:.2f} of the text outside zones, more than {rules.main_share}"
    title = _header_title(page.blocks)
    for decision in decisions:
        container = decision.block.container
        if container.zone and decision.block is not title:
            decision.drop(container.zone, container.detail)
        elif has_main and not container.is_main and decision.block is not title:
            decision.drop("outside_main", outside)
    _drop_links(decisions, rules)
    _drop_above_title(decisions, rules)


def _resolve_zones(page: WalkedPage, rules: BoilerplateRules) -> None:
    """Pass zones down to inner containers; ignore zones and widgets that hold the content."""
    total, titled = content_chars(page.containers), _titled(page.blocks)
    _forget_common_names(page.containers, rules)
    # Outer containers come before inner ones, so a parent's zone is final here.
    for container in page.containers:
        outer = container.parent
        if outer is not None and outer.zone:
            container.zone, container.detail = outer.zone, outer.detail
        elif container.zone or container.widget:
            # Of a short page, a newsletter box may hold half; the box does not have the title.
            is_box = container.widget in _BOXES and titled and id(container) not in titled
            most = rules.zone_share if is_box else rules.widget_share
            _resolve_zone(container, total, rules, most)
        if outer is not None:
            container.is_main = container.is_main or outer.is_main


def _forget_common_names(containers: Sequence[Container], rules: BoilerplateRules) -> None:
    """Ignore a name that much of the page has: the cards of a shop may all be called "cart"."""
    sizes: Counter[str] = Counter()
    for container in containers:
        outer = container.parent
        is_inner = outer is not None and outer.widget == container.widget
        if container.widget in _LISTED and not container.is_never_content and not is_inner:
            sizes[container.widget or ""] += container.chars
    root = containers[0]
    zones = sum(c.chars for c in containers if c.zone and (c.parent is root))
    for widget, size in sizes.items():
        if size > rules.widget_share * (root.chars - zones):
            for container in containers:
                if container.widget == widget:
                    container.widget = None


def _header_title(blocks: Sequence[PageBlock]) -> PageBlock | None:
    """Return the title of the page if it is in the page's header; it heads what follows."""
    titles = [block for block in blocks if block.level == 1]
    is_only = len(titles) == 1 and titles[0].container.zone == "header"
    return titles[0] if is_only else None


def _titled(blocks: list[PageBlock]) -> set[int]:
    """Return the identities of the containers around the titles of the page."""
    found: set[int] = set()
    for block in blocks:
        container: Container | None = block.container if block.level == 1 else None
        while container is not None:
            found.add(id(container))
            container = container.parent
    return found


def _resolve_zone(
    container: Container, total: int, rules: BoilerplateRules, widget_share: float
) -> None:
    share = container.plain_chars / total if total else 0.0
    if container.is_never_content:
        container.zone = container.widget or container.zone
        container.detail = "never content"
        return
    # A name alone does not make a widget of a section with a heading and prose, nor of a box that
    # shows details without asking for anything.
    if container.widget and container.prose_chars >= rules.prose_chars:
        is_text = container.prose_chars * 2 > container.chars and not container.has_form
        if container.has_heading or is_text:
            container.widget = None
    if container.zone == "dialog" and container.prose_chars and not container.has_form:
        container.zone = None
    # A form with much text is a page whose list can be filtered.
    most = rules.widget_share if container.zone == "control" else rules.zone_share
    if container.zone and share > most:
        container.zone = None
    if container.zone is None and container.widget and share <= widget_share:
        container.zone, most = container.widget, widget_share
    if container.zone:
        container.detail = f"holds {share:.2f} of the text, at most {most}"


def _main_share(blocks: list[PageBlock]) -> float:
    """Return how much of the text outside all zones is in <main>."""
    free = main = 0
    for block in blocks:
        if not block.container.zone:
            size = len(block.text)
            free += size
            main += size if block.container.is_main else 0
    return main / free if free else 0.0


def _drop_links(decisions: Sequence[BlockDecision], rules: BoilerplateRules) -> None:
    """Drop paragraphs that are one short link or a row of links, unless they make up a list."""
    run: list[BlockDecision] = []
    for decision in decisions:
        block = decision.block
        if decision.reason is not None:
            continue
        if _is_row_of_links(block):
            decision.drop("link_dense", f"a row of links, density {block.link_density:.2f}")
        # Headings do not end a run: directories have a letter between their entries.
        elif block.level:
            continue
        elif block.kind == PARAGRAPH and block.link_chars >= rules.link_density * len(block.text):
            run.append(decision)
        elif run:
            _drop_run(run, rules)
            run = []
    _drop_run(run, rules)


def _is_row_of_links(block: PageBlock) -> bool:
    if not block.link_chars or not (block.level or block.kind == PARAGRAPH):
        return False
    is_link = block.link_density >= _ROW_DENSITY
    return is_link and len(_BETWEEN_LINKS.findall(block.text)) > 1


def _drop_run(run: Sequence[BlockDecision], rules: BoilerplateRules) -> None:
    """Drop short links, unless there are enough of them in a row to be a list."""
    # Departments are often written as one link per <p> or <div>.
    entries = len({decision.block.text for decision in run})
    if entries >= rules.link_run:
        return
    for decision in run:
        words = decision.block.text.count(" ") + 1
        if words <= rules.link_words:
            density = (
                f"link density {decision.block.link_density:.2f}, at least {rules.link_density}"
            )
            size = f"{words} words, at most {rules.link_words}"
            row = f"{entries} in a row, fewer than {rules.link_run}"
            decision.drop("link_dense", f"{density}; {size}; {row}")


def _drop_above_title(decisions: Sequence[BlockDecision], rules: BoilerplateRules) -> None:
    """Drop the short texts above the title: dates, badges, contact lines, slogans.

    A text without links directly above the title belongs to it: "AWS Lambda", "School of Law".
    """
    # If there are more than `lead_blocks` above the first <h1>, they are content.
    above: list[BlockDecision] = []
    for decision in decisions:
        if decision.reason is not None:
            continue
        if decision.block.level == 1:
            break
        above.append(decision)
    else:
        return
    if len(above) > rules.lead_blocks:
        return
    if above and _is_kicker(above[-1], decision):
        above.pop()
    for decision in above:
        size = len(decision.block.text)
        if size < rules.lead_chars:
            numbers = f"{size} characters, fewer than {rules.lead_chars}"
            decision.drop(
                "above_title", f"{numbers}; {len(above)} blocks, at most {rules.lead_blocks}"
            )


def _is_kicker(decision: BlockDecision, title: BlockDecision) -> bool:
    """Return whether a block is the line above the title that says what the title is about."""
    block = decision.block
    is_near = decision.order == title.order - 1 and block.container is title.block.container
    return is_near and block.kind == PARAGRAPH and not block.link_chars
