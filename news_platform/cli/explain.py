"""`news-platform explain URL|DOMAIN|FEED`: show what is known about it, and why it is missing."""

from dataclasses import asdict

import click

from news_platform.api import open_root
from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.datasets.evidence import Evidence, Explanation
from news_platform.errors import InputError

_NO_TIME = " " * len("2025-11-01 00:00:00")


@click.command()
@click.argument("subject", metavar="URL|DOMAIN|FEED")
@root_option
@json_option
def explain(subject: str, root: str, as_json: bool) -> None:
    """Show all that is known about a page, a domain or a feed, with evidence and times.

    The order is that of the pipeline: crawl, domain store, survey, feeds, corpus, duplicates,
    search, sheets, exports, takedowns. The exit code is 1 if nothing is known.
    """
    resources_for(root)  # refuses a root that does not exist
    found = open_root(root).explain(subject)
    emit(asdict(found), as_json=as_json, text=_text(found))
    if not found.known:
        raise InputError(f"nothing is known about {subject!r}: see what to do above", thing=subject)


def _text(found: Explanation) -> str:
    state = "known" if found.known else "not known"
    lines = [f"{found.kind} {found.subject}: {state}"]
    dataset = ""
    for one in found.evidence:
        if one.dataset != dataset:
            dataset = one.dataset
            lines += ["", dataset]
        lines += _entry(one)
    if found.advice:
        lines += ["", "what to do", *(f"  {one}" for one in found.advice)]
    return "\n".join(lines)


def _entry(one: Evidence) -> list[str]:
    at = f"{one.at:%Y-%m-%d %H:%M:%S}" if one.at is not None else _NO_TIME
    head = f"  {at}  {one.state:<10}  {one.text}"
    return [head, *([f"  {_NO_TIME}  {'':<10}  {one.source}"] if one.source else [])]
