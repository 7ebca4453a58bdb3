"""What the pages of the survey's tables show beyond one day, and the check of its rhythm."""

from collections.abc import Mapping

import dagster as dg
import polars as pl

from news_platform.defs.checks import check
from news_platform.defs.metadata import markdown_table
from news_platform.defs.plots import trend_plot
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.resurvey import ResurveyOptions, plan_resurvey
from news_platform.domain_metadata.trends import (
    by_country,
    newly_refusing,
    read_surveys,
    shares,
    standing,
    trend,
)
from news_platform.resources import Resources
from news_platform.storage.objects.store import ObjectStore

_SHOWN_ROWS = 30
# A few hosts are always late: those that do not answer are tried every night.
_LEAST_IN_TIME = 0.95


@check("domain_metadata")
def domains_are_surveyed_in_time(resources: Resources, _key: str) -> dg.AssetCheckResult:
    """At least 95 % of all domains were surveyed within their interval and a day.

    If red: the schedule `resurvey_due_domains` is off, its runs fail, or the budget of a day
    (NEWS_PLATFORM_RESURVEYS_PER_DAY) is too small for the number of domains.
    """
    options = ResurveyOptions.of(resources.settings.domain_metadata)
    if options.interval_days <= 0:
        return dg.AssetCheckResult(passed=True, metadata={"disabled": "no resurveys are planned"})
    plan = plan_resurvey(
        store=resources.data_root.store,
        queue=DomainQueue(resources.ledger.engine),
        now=resources.clock.now(),
        options=options,
    )
    return dg.AssetCheckResult(
        passed=plan.share_in_time >= _LEAST_IN_TIME,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "share_in_time": plan.share_in_time,
            "domains": plan.domains,
            "due": plan.due,
            "late": plan.late,
            # What the budget would have to be so that every domain has its turn.
            "needed_per_day": round(plan.domains / options.interval_days),
            "budget_per_day": options.per_day,
        },
    )


def trend_metadata(store: ObjectStore, day: str) -> Mapping[str, dg.MetadataValue]:
    """Return refusals by purpose and crawler over time, by country, and adoption of llms.txt."""
    surveys = read_surveys(store, day)
    if not surveys.height:
        return {}
    found, now = trend(surveys), by_country(standing(surveys, day))
    newest = {**found.purposes, **found.bots, "llms.txt": found.llms_txt}
    return {
        "refusals_by_purpose": trend_plot(found.days, found.purposes, "domains that refuse"),
        "refusals_by_bot": trend_plot(found.days, found.bots, "domains that refuse"),
        "llms_txt": trend_plot(found.days, {"llms.txt": found.llms_txt}, "domains with llms.txt"),
        "by_country": _table(now),
        "shares_now": markdown_table(
            ("what", "share"), zip(newest, shares(row[-1] for row in newest.values()), strict=True)
        ),
        "domains_standing": dg.MetadataValue.int(int(now.get_column("domains").sum())),
        "llms_txt_share": dg.MetadataValue.float(float(found.llms_txt[-1])),
        **{
            f"refuse_{name}_share": dg.MetadataValue.float(float(row[-1]))
            for name, row in found.purposes.items()
        },
    }


def newly_refusing_metadata(changes: pl.DataFrame) -> Mapping[str, dg.MetadataValue]:
    """Return the domains that began to refuse on a day."""
    rows = newly_refusing(changes)
    return {
        "newly_refusing": _table(rows),
        "newly_refusing_domains": dg.MetadataValue.int(rows.get_column("domain").n_unique()),
    }


def _table(rows: pl.DataFrame) -> dg.MarkdownMetadataValue:
    return markdown_table(rows.columns, rows.head(_SHOWN_ROWS).iter_rows())
