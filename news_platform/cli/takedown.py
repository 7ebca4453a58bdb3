"""`news-platform takedown`: remove pages and domains from everything, and verify it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from news_platform.cli.command import Output, command, first_of, table
from news_platform.composition.takedown_parts import (
    all_parts,
    apply_root,
    has_work,
    known_aliases,
    record_request,
    same_text_elsewhere,
    verify_root,
    versions_note,
)
from news_platform.datasets.takedowns import TakedownKind, TakedownScope
from news_platform.errors import InputError, NewsPlatformError
from news_platform.resources import Resources
from news_platform.storage.commit.root import RootAccess
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import ApplyReport, FoundPlaces, find_places
from news_platform.takedowns.requests import (
    TakedownState,
    TakedownTerms,
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
    "it may be collected again; removed data returns only when it is collected again, such as by "
    "`ccnews collect --redo all` or the next poll of its feed"
)

_COUNTS = ("files", "bytes_read", "bytes_inflated", "rows")


@click.group()
def takedown() -> None:
    """Remove a URL, a prefix or a domain from everything."""


def _add_access(dry_run: bool, **_given: object) -> RootAccess:
    return RootAccess.READ if dry_run else RootAccess.WRITE


@command(takedown, access=_add_access)
@click.argument("urls", nargs=-1)
@click.option("--domain", "domains", multiple=True, help="A domain with all its hosts; repeatable.")
@click.option("--prefix", "prefixes", multiple=True, help="All URLs that begin so; repeatable.")
@click.option("--reason", required=True, help="Why, for the record.")
@click.option("--by", "requested_by", default="", help="Who made the request, in your own words.")
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in TakedownScope]),
    default=TakedownScope.both.value,
    show_default=True,
    help="stored: remove stored data; future: do not collect it; both.",
)
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="Day on which it ends, UTC.")
@click.option("--dry-run", is_flag=True, help="List every place that holds it; store no request.")
def add(
    resources: Resources,
    urls: tuple[str, ...],
    domains: tuple[str, ...],
    prefixes: tuple[str, ...],
    dry_run: bool,
    **given: Any,
) -> Output:
    """Record a request: nothing of it is collected or shown from now on.

    The ledger forgets it at once; `takedown apply` removes everything else that is stored.
    """
    kind, values = _named(urls, prefixes, domains)
    request = new_request(kind, values, terms=_terms(**given), now=resources.clock.now())
    store = resources.data_root.store
    if dry_run:
        aliases = [*read_aliases(store), *known_aliases(resources)]
        takedowns = Takedowns.of([request], aliases=aliases)
        found = find_places(all_parts(resources), takedowns)
        copies = same_text_elsewhere(resources, takedowns)
        document = {"places": found, "same_text_elsewhere": copies}
        return Output(document, _places_text(found, copies))
    try:
        failure = record_request(resources, request)
    finally:
        resources.ledger.close()
    effects = {
        TakedownScope.future: "is not collected",
        TakedownScope.stored: "is not shown",
        TakedownScope.both: "is neither collected nor shown",
    }
    text = f"{request.id}: recorded; it {effects[request.scope]} from now on"
    if request.scope is not TakedownScope.future:
        text += "; run `news-platform takedown apply` to remove what is stored"
    return Output({"id": request.id, "values": request.values}, text, failure)


def _terms(
    *, reason: str, requested_by: str, scope: str, expires: datetime | None
) -> TakedownTerms:
    until = expires.replace(tzinfo=UTC) if expires else None
    return TakedownTerms(reason, requested_by, TakedownScope(scope), until)


def _named(
    urls: Sequence[str], prefixes: Sequence[str], domains: Sequence[str]
) -> tuple[TakedownKind, Sequence[str]]:
    kinds = {TakedownKind.url: urls, TakedownKind.prefix: prefixes, TakedownKind.domain: domains}
    given = [(kind, values) for kind, values in kinds.items() if values]
    if len(given) != 1:
        raise click.UsageError("give either URLs, or --prefix, or --domain")
    return given[0]


def _places_text(found: FoundPlaces, copies: Sequence[str]) -> str:
    rows = [
        (dataset, sum(places.values()), len(places), first_of(sorted(places)))
        for dataset, places in found.items()
    ]
    if not rows:
        return "nothing stored holds it"
    lines = [table(("dataset", "rows", "partitions", ""), rows)]
    lines += [f"same text elsewhere: {url}" for url in copies]
    if copies:
        urls = " ".join(map(repr, copies))
        lines.append(f"`news-platform takedown add {urls} --reason …` would remove it, too")
    return "\n".join(lines)


@command(takedown, "list")
def list_(resources: Resources) -> Output:
    """List all requests and their states."""
    now = resources.clock.now()
    states = read_states(resources.data_root.store)
    text = "\n".join(_state_line(state, now) for state in states) or "no takedowns"
    return Output([_state_document(state, now) for state in states], text)


def _state_line(state: TakedownState, now: datetime) -> str:
    request = state.request
    what = f"{request.kind} {first_of(request.values, shown=1)}"
    return f"{request.id}  {state.status(now):<10}{request.scope:<8}{what}  ({request.reason})"


def _state_document(state: TakedownState, now: datetime) -> dict[str, object]:
    return {**asdict(state.request), "status": state.status(now)}


@command(takedown)
@click.argument("takedown_id", metavar="ID")
def show(resources: Resources, takedown_id: str) -> Output:
    """Show one request, and what was removed when."""
    store = resources.data_root.store
    state = require_request(store, takedown_id)
    document = {
        **_state_document(state, resources.clock.now()),
        "record": dict(read_record(store, takedown_id)),
    }
    lines = [f"{key}: {value}" for key, value in document.items() if value not in (None, "", {})]
    return Output(document, "\n".join(lines))


@command(takedown, access=RootAccess.WRITE)
@click.argument("takedown_id", metavar="ID")
@click.option("--reason", default="", help="Why, for the record.")
def withdraw(resources: Resources, takedown_id: str, reason: str) -> Output:
    """Allow collection again.

    Removed data returns only when it is collected again.
    """
    now = resources.clock.now()
    is_new = withdraw_request(resources.data_root.store, takedown_id, reason=reason, now=now)
    text = _WITHDRAWN if is_new else "it was already withdrawn"
    return Output({"id": takedown_id, "withdrawn": True}, f"{takedown_id}: {text}")


@command(takedown, access=RootAccess.WRITE)
@click.option("--all", "search_again", is_flag=True, help="Also search for applied requests again.")
@click.option(
    "--delete-versions",
    is_flag=True,
    help="Also delete all old versions that a versioned bucket keeps under the root.",
)
def apply(resources: Resources, search_again: bool, delete_versions: bool) -> Output:
    """Remove what is stored of all requests.

    An interrupted removal is finished first.
    """
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
    failure = None
    if report.left:
        place, cause = next(iter(report.left.items()))
        failure = NewsPlatformError(
            f"{len(report.left)} places still hold what is taken down, first: {place}: {cause}; "
            "fix the cause, then run `news-platform takedown apply` again"
        )
    return Output(document, _apply_text(report), failure)


def _apply_text(report: ApplyReport) -> str:
    rows = [
        (dataset, one.rows, one.bytes_removed, one.bytes_written)
        for dataset, one in report.removed.items()
    ]
    lines = [table(("dataset", "rows", "bytes removed", "bytes written"), rows)] if rows else []
    lines += report.notes
    lines += [f"left: {place}: {cause}" for place, cause in report.left.items()]
    if report.served:
        lines.append(f"{len(report.served)} requests served")
    elif not report.left:
        lines.append("nothing to apply")
    return "\n".join(lines)


@command(takedown)
@click.argument("takedown_ids", metavar="[ID]...", nargs=-1)
@click.option("--sample", type=click.FloatRange(0, 1), help="Read only this share of the files.")
def verify(resources: Resources, takedown_ids: tuple[str, ...], sample: float | None) -> Output:
    """Prove that nothing taken down is stored.

    Every byte under the root and the ledger is read. The exit code is 1 if anything is found or
    cannot be read.
    """
    store = resources.data_root.store
    unknown = set(takedown_ids) - {one.request.id for one in read_states(store)}
    if unknown:
        raise InputError(f"there is no takedown {min(unknown)!r}", thing=min(unknown))
    try:
        found = verify_root(resources, only=frozenset(takedown_ids), share=sample)
    finally:
        resources.ledger.close()
    notes = versions_note(store)
    document = {
        "findings": [asdict(one) for one in found.findings],
        "unreadable": found.unreadable,
        "mentioned": found.mentioned,
        **{name: getattr(found, name) for name in _COUNTS},
        "pending": [f"{one} {key}" for one, key in list_pending(store)],
        "notes": notes,
    }
    failure = _not_clean(resources, found)
    return Output(document, "\n".join([*notes, _verify_text(found)]), failure)


def _not_clean(resources: Resources, found: VerificationReport) -> NewsPlatformError | None:
    for first in found.findings:
        # Applied requests are searched for again only with --all.
        cure = "apply" if has_work(resources) else "apply --all"
        return NewsPlatformError(
            f"found {len(found.findings)} traces of what is taken down, first: {first.place}: "
            f"{first.what}; run `news-platform takedown {cure}`, then verify again"
        )
    for place, cause in found.unreadable.items():
        return NewsPlatformError(
            f"{len(found.unreadable)} places cannot be read and may hold anything, first: {place}: "
            f"{cause}; mend or delete it, then verify again"
        )
    return None


def _verify_text(found: VerificationReport) -> str:
    lines = [f"found      {one.place}: {one.what}" for one in found.findings]
    lines += [f"unreadable {place}: {cause}" for place, cause in found.unreadable.items()]
    lines += [f"mentioned  {place} ({count})" for place, count in sorted(found.mentioned.items())]
    lines.append(
        f"read {found.files} files, {found.bytes_read} bytes ({found.bytes_inflated} inflated), "
        f"{found.rows} rows"
    )
    lines.append("nothing taken down is stored" if found.is_clean else "NOT CLEAN")
    return "\n".join(lines)
