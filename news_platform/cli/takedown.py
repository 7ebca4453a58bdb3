"""`news-platform takedown`: remove pages and domains from everything, for good, and prove it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.composition.takedown_parts import (
    all_parts,
    apply_root,
    has_work,
    known_aliases,
    same_text_elsewhere,
    verify_root,
    versions_note,
)
from news_platform.datasets.takedowns import TakedownKind, TakedownScope
from news_platform.errors import InputError, NewsPlatformError
from news_platform.storage.commit.root import RootAccess
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import ApplyReport, FoundPlaces, find_places
from news_platform.takedowns.requests import (
    TakedownState,
    TakedownTerms,
    add_request,
    list_pending,
    new_request,
    read_aliases,
    read_record,
    read_states,
    require_request,
    withdraw_request,
)
from news_platform.takedowns.verify import VerificationReport

_WITHDRAWN = (
    "the ban on collecting ends; what was removed comes back only by a new collection, such as "
    "`ccnews collect --redo all` or the next poll of its feed"
)

_COUNTS = ("files", "bytes_read", "bytes_inflated", "rows")


@click.group()
def takedown() -> None:
    """Remove a URL, a prefix or a domain from everything, for good, and prove it."""


@takedown.command()
@click.argument("urls", nargs=-1)
@click.option("--domain", "domains", multiple=True, help="A domain with all its hosts; repeatable.")
@click.option("--prefix", "prefixes", multiple=True, help="All URLs that begin so; repeatable.")
@click.option("--reason", required=True, help="Why, for the record.")
@click.option("--by", "requested_by", default="", help="Who asked, in your own words.")
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in TakedownScope]),
    default=TakedownScope.both.value,
    show_default=True,
    help="stored: remove what is there; future: do not collect it; both.",
)
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="Day on which it ends, UTC.")
@click.option("--dry-run", is_flag=True, help="List every place that holds it; store no request.")
@root_option
@json_option
def add(
    urls: tuple[str, ...],
    domains: tuple[str, ...],
    prefixes: tuple[str, ...],
    dry_run: bool,
    root: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Record a request; from now on nothing collects what it names. `apply` removes the rest."""
    resources = resources_for(root, RootAccess.READ if dry_run else RootAccess.WRITE)
    kind, values = _named(urls, prefixes, domains)
    request = new_request(kind, values, terms=_terms(**given), now=resources.clock.now())
    store = resources.data_root.store
    if dry_run:
        aliases = [*read_aliases(store), *known_aliases(resources)]
        takedowns = Takedowns.of([request], aliases=aliases)
        found = find_places(all_parts(resources), takedowns)
        copies = same_text_elsewhere(resources, takedowns)
        document = {"places": found, "same_text_elsewhere": copies}
        emit(document, as_json=as_json, text=_places_text(found, copies))
        return
    add_request(store, request)
    text = f"{request.id}: recorded, nothing collects it from now on"
    if request.scope is not TakedownScope.future:
        text += "; run `news-platform takedown apply` to remove what is stored"
    emit({"id": request.id, "values": request.values}, as_json=as_json, text=text)


def _terms(
    *, reason: str, requested_by: str, scope: str, expires: datetime | None
) -> TakedownTerms:
    until = expires.replace(tzinfo=UTC) if expires else None
    return TakedownTerms(reason, requested_by, TakedownScope(scope), until)


def _named(
    urls: Sequence[str], prefixes: Sequence[str], domains: Sequence[str]
) -> tuple[TakedownKind, Sequence[str]]:
    given = [
        (kind, values)
        for kind, values in (
            (TakedownKind.url, urls),
            (TakedownKind.prefix, prefixes),
            (TakedownKind.domain, domains),
        )
        if values
    ]
    if len(given) != 1:
        raise click.UsageError("give either URLs, or --prefix, or --domain")
    return given[0]


def _places_text(found: FoundPlaces, copies: Sequence[str]) -> str:
    if not found:
        return "nothing stored holds it"
    lines = [f"{'dataset':<24}{'rows':>8}{'partitions':>12}"]
    for dataset, places in found.items():
        keys = sorted(places)
        shown = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
        lines.append(f"{dataset:<24}{sum(places.values()):>8}{len(keys):>12}  {shown}")
    lines += [f"same text elsewhere: {url}" for url in copies]
    if copies:
        urls = " ".join(map(repr, copies))
        lines.append(f"`news-platform takedown add {urls} --reason …` would remove it, too")
    return "\n".join(lines)


@takedown.command("list")
@root_option
@json_option
def list_(root: str, as_json: bool) -> None:
    """List all requests and what became of each."""
    resources = resources_for(root)
    now = resources.clock.now()
    states = read_states(resources.data_root.store)
    text = "\n".join(_state_line(state, now) for state in states) or "no takedowns"
    emit([_state_document(state, now) for state in states], as_json=as_json, text=text)


def _state_line(state: TakedownState, now: datetime) -> str:
    request = state.request
    more = f" and {len(request.values) - 1} more" if len(request.values) > 1 else ""
    what = f"{request.kind} {request.values[0]}{more}"
    return f"{request.id}  {state.status(now):<10}{request.scope:<8}{what}  ({request.reason})"


def _state_document(state: TakedownState, now: datetime) -> dict[str, object]:
    return {**asdict(state.request), "status": state.status(now)}


@takedown.command()
@click.argument("takedown_id", metavar="ID")
@root_option
@json_option
def show(takedown_id: str, root: str, as_json: bool) -> None:
    """Show one request, and when and how much was removed."""
    resources = resources_for(root)
    store = resources.data_root.store
    state = require_request(store, takedown_id)
    document = {
        **_state_document(state, resources.clock.now()),
        "record": dict(read_record(store, takedown_id)),
    }
    lines = [f"{key}: {value}" for key, value in document.items() if value not in (None, "", {})]
    emit(document, as_json=as_json, text="\n".join(lines))


@takedown.command()
@click.argument("takedown_id", metavar="ID")
@click.option("--reason", default="", help="Why, for the record.")
@root_option
@json_option
def withdraw(takedown_id: str, reason: str, root: str, as_json: bool) -> None:
    """End the ban on collecting; what was removed comes back only by a new collection."""
    resources = resources_for(root, RootAccess.WRITE)
    now = resources.clock.now()
    is_new = withdraw_request(resources.data_root.store, takedown_id, reason=reason, now=now)
    text = f"{takedown_id}: {_WITHDRAWN}" if is_new else f"{takedown_id}: withdrawn before"
    emit({"id": takedown_id, "withdrawn": True}, as_json=as_json, text=text)


@takedown.command()
@click.option("--all", "search_again", is_flag=True, help="Search for applied requests again, too.")
@click.option(
    "--delete-versions",
    is_flag=True,
    help="Also delete all old versions that a versioned bucket keeps under the root.",
)
@root_option
@json_option
def apply(search_again: bool, delete_versions: bool, root: str, as_json: bool) -> None:
    """Remove what is stored of all requests, and finish what was interrupted."""
    resources = resources_for(root, RootAccess.WRITE)
    try:
        report = apply_root(resources, search_again=search_again, delete_versions=delete_versions)
    finally:
        resources.ledger.close()
    document = {
        "served": report.served,
        "removed": {dataset: asdict(one) for dataset, one in report.removed.items()},
        "left": report.left,
        "notes": report.notes,
    }
    emit(document, as_json=as_json, text=_apply_text(report))
    if report.left:
        place, cause = next(iter(report.left.items()))
        raise NewsPlatformError(
            f"{len(report.left)} places still hold what is taken down, first: {place}: {cause}; "
            "mend the cause, then run `news-platform takedown apply` again"
        )


def _apply_text(report: ApplyReport) -> str:
    lines = [
        f"{dataset:<24}{one.rows:>8} rows{one.bytes_removed:>14} bytes removed"
        f"{one.bytes_written:>14} written"
        for dataset, one in report.removed.items()
    ]
    lines += report.notes
    lines += [f"left: {place}: {cause}" for place, cause in report.left.items()]
    if report.served or not report.left:
        served = f"{len(report.served)} requests served"
        lines.append(served if report.served else "nothing to apply")
    return "\n".join(lines)


@takedown.command()
@click.argument("takedown_ids", metavar="[ID]...", nargs=-1)
@click.option("--sample", type=click.FloatRange(0, 1), help="Read only this share of the files.")
@root_option
@json_option
def verify(takedown_ids: tuple[str, ...], sample: float | None, root: str, as_json: bool) -> None:
    """Read every byte under the root and the ledger; exit 1 if anything taken down is stored."""
    resources = resources_for(root)
    store = resources.data_root.store
    unknown = set(takedown_ids) - {one.request.id for one in read_states(store)}
    if unknown:
        raise InputError(f"there is no takedown {min(unknown)!r}", thing=min(unknown))
    try:
        found = verify_root(resources, only=frozenset(takedown_ids), share=sample)
    finally:
        resources.ledger.close()
    pending = list_pending(store)
    notes = versions_note(store)
    document = {
        "findings": [asdict(one) for one in found.findings],
        "mentioned": found.mentioned,
        **{name: getattr(found, name) for name in _COUNTS},
        "pending": [f"{one} {key}" for one, key in pending],
        "notes": notes,
    }
    emit(document, as_json=as_json, text="\n".join([*notes, _verify_text(found)]))
    if found.findings:
        first = found.findings[0]
        # What was applied before is searched again only when asked.
        cure = "apply" if has_work(resources) else "apply --all"
        raise NewsPlatformError(
            f"found {len(found.findings)} traces of what is taken down, first: {first.place}: "
            f"{first.what}; run `news-platform takedown {cure}`, then verify again"
        )


def _verify_text(found: VerificationReport) -> str:
    lines = [f"found      {one.place}: {one.what}" for one in found.findings]
    lines += [f"mentioned  {place} ({count})" for place, count in sorted(found.mentioned.items())]
    lines.append(
        f"read {found.files} files, {found.bytes_read} bytes ({found.bytes_inflated} inflated), "
        f"{found.rows} rows"
    )
    lines.append("nothing taken down is stored" if not found.findings else "NOT CLEAN")
    return "\n".join(lines)
