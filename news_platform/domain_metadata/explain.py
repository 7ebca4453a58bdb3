"""Explain what the survey knows about a site: its answers, the robots rule, its AI policies."""

from collections.abc import Iterator

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    ROBOTS_FILE,
    domain_folder,
)
from news_platform.datasets.evidence import Evidence
from news_platform.domain_metadata.history import read_history
from news_platform.domain_metadata.pipeline import METADATA_DATASET as DATASET
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.signals.verdict import EVERYBODY
from news_platform.domain_metadata.usage import StoredSurvey, iter_surveys, survey_at
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.robots import AI_BOTS, Robots
from news_platform.web.urls import url_host

_SHOWN_BOTS = 12
_SHOWN_CHANGES = 20


def explain_site(
    store: ObjectStore, domain: str, *, url: str, path: str | None, user_agent: str
) -> Iterator[Evidence]:
    """Yield the newest survey of a domain, and what its rules say about a URL.

    What it states about use is about the page at `path`, or about the site if that is None.
    """
    # The newest survey that learned the site's rules, else the newest of all.
    survey = survey_at(store, domain) or next(iter_surveys(store, domain), None)
    if survey is None:
        yield Evidence(DATASET, "absent", f"{domain} was never surveyed.")
        return
    batch, facts = survey.batch, survey.facts
    folder = domain_folder(batch, domain)
    yield Evidence(
        DATASET,
        "surveyed" if facts.final else "pending",
        f"The survey of {domain} ended with {facts.outcome.replace('_', ' ')}.",
        at=facts.collected_at,
        source=f"{folder}/{METADATA_FILE}",
        details={"batch": batch.key, "country": facts.country, "category": facts.category},
    )
    yield _robots_rule(survey, folder, url=url, user_agent=user_agent)
    yield from _policies(survey, folder, path=path)


def explain_changes(store: ObjectStore, domain: str) -> Iterator[Evidence]:
    """Yield every change of a domain's rules and statements between two surveys."""
    changes = read_history(store, domain).changes
    for one in changes[-_SHOWN_CHANGES:]:
        what = f"{one['signal']} {one['label'] or one['bot']}"
        yield Evidence(
            DATASET,
            "changed",
            f"Between {one['before_date']} and {one['date']}, {what} changed from "
            f"{one['before'] or 'nothing'} to {one['after'] or 'nothing'}.",
            source=f"ai_policy_changes/date={one['date']}/part-0.parquet",
        )


def _robots_rule(survey: StoredSurvey, folder: str, *, url: str, user_agent: str) -> Evidence:
    name, answer = survey.robots_file(url_host(url))
    path = f"{folder}/{name}"
    if answer.status_code is None:
        text = f"{answer.host} gave no robots.txt: {answer.error or 'no answer'}."
        return Evidence(DATASET, "unknown", text, at=answer.fetched_at)
    rules = Robots.of_answer(answer.status_code, survey.read_file(name) if answer.exists else b"")
    state = "allowed" if rules.allows(user_agent, url) else "refused"
    rule = rules.deciding_rule(user_agent, url)
    if rule is None:
        why = "no rule applies" if answer.exists else f"there is none ({answer.status_code})"
        text = f"By the robots.txt of {answer.host}, fetching is {state}: {why}."
        return Evidence(DATASET, state, text, at=answer.fetched_at, source=path)
    return Evidence(
        DATASET,
        state,
        f"The robots.txt of {answer.host} {'allows' if rule.allow else 'refuses'} it to "
        f"{user_agent.partition('/')[0]}: `{rule}` in line {rule.line}.",
        at=answer.fetched_at,
        source=f"{path}:{rule.line}" if rule.line else path,
        details={"rule": str(rule), "line": str(rule.line), "file": answer.final_url or answer.url},
    )


def _policies(survey: StoredSurvey, folder: str, *, path: str | None) -> Iterator[Evidence]:
    facts = survey.facts
    if facts.usage is None:
        yield Evidence(DATASET, "unknown", "What the site states about AI use is not known.")
        return
    surveyed = facts.collected_at
    for purpose in PURPOSES:
        found = survey.decide(EVERYBODY, purpose, path)
        raw = "; ".join(dict.fromkeys(one.statement.raw for one in found.findings))
        yield Evidence(
            DATASET,
            found.verdict,
            f"For {purpose.replace('_', ' ')} by any crawler the site's statements say "
            f"{found.verdict}{f': {raw}' if raw else ''}.",
            at=min((one.statement.read_at or surveyed for one in found.findings), default=surveyed),
            source="; ".join(dict.fromkeys(one.statement.source for one in found.findings)),
            details={"purpose": purpose} | ({"path": path} if path else {}),
        )
    if facts.ai_policy is None:
        return
    everyone, own = facts.ai_policy.everyone, facts.ai_policy.own
    policies = ((bot.name, own.get(bot.name, everyone)) for bot in AI_BOTS)
    refused = [name for name, policy in policies if policy == "disallow_all"]
    if refused:
        more = f" and {len(refused) - _SHOWN_BOTS} more" if len(refused) > _SHOWN_BOTS else ""
        yield Evidence(
            DATASET,
            "refused",
            f"robots.txt refuses the whole site to {', '.join(refused[:_SHOWN_BOTS])}{more}.",
            at=facts.collected_at,
            source=f"{folder}/{ROBOTS_FILE}",
            details={"bots": ", ".join(refused)},
        )
