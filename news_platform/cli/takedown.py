"""`news-platform takedown`: remove pages and domains from everything, and verify it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from news_platform.cli.command import Output, command, first_of, table
from news_platform.composition.opt_out_lists import (
    build_exports_again,
    list_coverage,
    record_list,
)
from news_platform.composition.takedown_parts import (
    all_parts,
    apply_root,
    has_work,
    known_aliases,
    record_request,
    same_text_elsewhere,
    versions_note,
)
from news_platform.composition.takedown_verification import verify_root
from news_platform.datasets.takedowns import TakedownKind, TakedownRequest, TakedownScope
from news_platform.errors import InputError, NewsPlatformError
from news_platform.resources import Resources
from news_platform.storage.commit.root import RootAccess
from news_platform.takedowns.lists import (
    BadList,
    is_same_version,
    new_version,
    newest_version,
    parse_list,
    read_lists,
)
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
from news_platform.text.readable import number_of
from news_platform.web.urls import has_registrable_domain

_WITHDRAWN = (
    "it may be collected again; removed data returns only when it is collected again, such as by "
    "`ccnews collect --redo all` or the next poll of its feed"
)
_EXPORTED = (
    "it may be exported again; run `news-platform takedown apply` to build stored exports again"
)

_SCOPES = (
    "stored: remove stored data; future: do not collect it; both; export: keep it, but leave it "
    "out of every export."
)
# Changed entries that a person is shown; the document has all of them.
_SHOWN = 20
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
    help=_SCOPES,
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
    text = f"{request.id}: recorded; it {_effect(request)}"
    return Output({"id": request.id, "values": request.values}, text, failure)


def _effect(request: TakedownRequest) -> str:
    match request.scope:
        case TakedownScope.future:
            return "is not collected from now on"
        case TakedownScope.export:
            return (
                "is not exported from now on; run `news-platform takedown apply` to build stored "
                "exports again"
            )
        case TakedownScope.stored:
            what = "is not shown"
        case _:
            what = "is neither collected nor shown"
    return f"{what} from now on; run `news-platform takedown apply` to remove what is stored"


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
    for url in urls:
        # As a page, the bare name of a site would cover its front page alone.
        if "/" not in url and has_registrable_domain(url):
            raise InputError(
                f"{url!r} is a domain: write `--domain {url}` to take it down with all its pages, "
                f"or 'https://{url}/' for its front page alone",
                thing=url,
            )
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


@command(takedown, "import", access=_add_access)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--list", "name", required=True, help="Name of the list, such as publishers.")
@click.option("--source", default="", help="Where the list comes from; by default the file's name.")
@click.option(
    "--scope",
    type=click.Choice(list(TakedownScope)),
    help=f"{_SCOPES} Default: as before, else both.",
)
@click.option("--dry-run", is_flag=True, help="Show the difference and what it covers.")
def import_(
    resources: Resources, file: Path, name: str, source: str, scope: str | None, dry_run: bool
) -> Output:
    """Import an opt-out list, or a newer version of one.

    The file has one domain, address or prefix (which ends with *) per line, or is CSV or JSON.
    """
    store, now = resources.data_root.store, resources.clock.now()
    try:
        values = parse_list(file.read_bytes(), file=file.name)
    except BadList as error:
        return Output({"bad_lines": error.lines}, "\n".join(error.lines), error)
    before = newest_version(store, name)
    wanted = TakedownScope(scope or (before.request.scope if before else TakedownScope.both))
    terms = TakedownTerms(f"opt-out list {name}", source or file.name, wanted)
    request, changes = new_version(name, values, before=before, terms=terms, now=now)
    document: dict[str, object] = {
        "id": request.id,
        "scope": wanted,
        "entries": len(values),
        "added": changes.added,
        "removed": changes.removed,
    }
    lines = [f"+ {one}" for one in changes.added[:_SHOWN]]
    lines += [f"- {one}" for one in changes.removed[:_SHOWN]]
    lines.append(
        f"{request.id}: {number_of(len(values), 'entry', 'entries')}, {len(changes.added)} added, "
        f"{len(changes.removed)} removed"
    )
    if before is not None and is_same_version(before, request):
        return Output({**document, "id": before.request.id}, f"{before.request.id}: unchanged")
    if dry_run:
        coverage = list_coverage(resources, _list_takedowns(resources, request))
        return Output(
            {**document, "coverage": asdict(coverage)},
            "\n".join([*lines, f"it covers {coverage.text}; nothing was stored"]),
        )
    try:
        failure = record_list(resources, request, before)
    finally:
        resources.ledger.close()
    return Output(document, "\n".join([*lines, f"what it names {_effect(request)}"]), failure)


def _list_takedowns(resources: Resources, request: TakedownRequest) -> Takedowns:
    aliases = [*read_aliases(resources.data_root.store), *known_aliases(resources)]
    return Takedowns.of([request], aliases=aliases)


@command(takedown)
def lists(resources: Resources) -> Output:
    """List the opt-out lists, and what of this root each covers."""
    now, rows = resources.clock.now(), []
    for state in read_lists(resources.data_root.store):
        request = state.request
        coverage = list_coverage(resources, _list_takedowns(resources, request))
        rows.append(
            {
                "list": request.id,
                "source": request.requested_by,
                "date": f"{request.requested_at:%Y-%m-%d}",
                "scope": request.scope.value,
                "status": state.status(now),
                "entries": len(request.values),
                **asdict(coverage),
            }
        )
    resources.ledger.close()
    return Output(rows, None if rows else "no lists")


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
    """End a request, or a list by its name.

    What it names may be collected and exported again. Removed data returns only when it is
    collected again.
    """
    store, now = resources.data_root.store, resources.clock.now()
    newest = newest_version(store, takedown_id)
    state = newest or require_request(store, takedown_id)
    is_new = withdraw_request(store, state.request.id, reason=reason, now=now)
    if state.request.scope is TakedownScope.export:
        build_exports_again(resources)
    ended = _EXPORTED if state.request.scope is TakedownScope.export else _WITHDRAWN
    text = ended if is_new else "it was already withdrawn"
    return Output({"id": state.request.id, "withdrawn": True}, f"{state.request.id}: {text}")


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
        places = number_of(len(report.left), "place still holds", "places still hold")
        failure = NewsPlatformError(
            f"{places} what is taken down, first: {place}: {cause}; "
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
        lines.append(f"{number_of(len(report.served), 'request')} served")
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
            f"found {number_of(len(found.findings), 'trace')} of what is taken down, first: "
            f"{first.place}: {first.what}; run `news-platform takedown {cure}`, then verify again"
        )
    for place, cause in found.unreadable.items():
        return NewsPlatformError(
            f"{number_of(len(found.unreadable), 'place')} cannot be read and may hold anything, "
            f"first: {place}: {cause}; mend or delete it, then verify again"
        )
    return None


def _verify_text(found: VerificationReport) -> str:
    lines = [f"found      {one.place}: {one.what}" for one in found.findings]
    lines += [f"unreadable {place}: {cause}" for place, cause in found.unreadable.items()]
    lines += [f"mentioned  {place} ({count})" for place, count in sorted(found.mentioned.items())]
    lines.append(
        f"read {number_of(found.files, 'file')}, {found.bytes_read} bytes ({found.bytes_inflated} "
        f"inflated), {number_of(found.rows, 'row')}"
    )
    lines.append("nothing taken down is stored" if found.is_clean else "NOT CLEAN")
    return "\n".join(lines)
