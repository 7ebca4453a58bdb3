"""Find the boilerplate of a page by structure and link density: a reason or None per block."""

import re

from news_platform.source_records.blocks import PARAGRAPH, Container, PageBlock, WalkedPage
from news_platform.source_records.options import BoilerplateRules

_BETWEEN_LINKS = re.compile(r" [|/·•›»>] ")
# Lower than BoilerplateRules.link_density: in a row of links the separators are not links.
_ROW_DENSITY = 0.6


def boilerplate_reasons(page: WalkedPage, rules: BoilerplateRules) -> list[str | None]:
    """Return for every block the reason why it is boilerplate, or None."""
    _resolve_zones(page.containers, rules)
    has_main = _has_main(page.blocks, rules)
    reasons = [_reason(block, has_main, rules) for block in page.blocks]
    _drop_above_title(page.blocks, reasons, rules)
    return reasons


def _resolve_zones(containers: list[Container], rules: BoilerplateRules) -> None:
    """Pass zones down to inner containers; ignore zones and widgets with too much plain text."""
    plain = containers[0].plain_chars
    # Outer containers come before inner ones, so a parent's zone is final here.
    for container in containers:
        outer = container.parent
        if container.plain_chars > rules.zone_share * plain:
            container.zone = None
        if container.widget and container.plain_chars <= rules.widget_share * plain:
            container.zone = container.zone or container.widget
        if outer is not None:
            container.zone = outer.zone or container.zone
            container.is_main = container.is_main or outer.is_main


def _has_main(blocks: list[PageBlock], rules: BoilerplateRules) -> bool:
    """Return whether <main> holds enough of the text outside all zones to be the content."""
    free = main = 0
    for block in blocks:
        if not block.container.zone:
            size = len(block.text)
            free += size
            main += size if block.container.is_main else 0
    return main > rules.main_share * free


def _reason(block: PageBlock, has_main: bool, rules: BoilerplateRules) -> str | None:
    if block.container.zone:
        return block.container.zone
    if has_main and not block.container.is_main:
        return "outside_main"
    if block.kind == PARAGRAPH and _is_link_dense(block, rules):
        return "link_dense"
    return None


def _is_link_dense(block: PageBlock, rules: BoilerplateRules) -> bool:
    density = block.link_density
    if density >= rules.link_density and block.text.count(" ") < rules.link_words:
        return True
    return density >= _ROW_DENSITY and len(_BETWEEN_LINKS.findall(block.text)) > 1


def _drop_above_title(
    blocks: list[PageBlock], reasons: list[str | None], rules: BoilerplateRules
) -> None:
    """Drop the short texts above the title: dates, badges, contact lines, slogans."""
    # If there are more than `lead_blocks` above the first <h1>, they are content.
    above: list[int] = []
    for index, block in enumerate(blocks):
        if reasons[index]:
            continue
        if block.level == 1:
            break
        above.append(index)
    else:
        return
    if len(above) <= rules.lead_blocks:
        for index in above:
            if len(blocks[index].text) < rules.lead_chars:
                reasons[index] = "above_title"
