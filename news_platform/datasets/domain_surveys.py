"""The tables of a day's surveys: domain_surveys, usage_signals and ai_policy_changes."""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    ALL_BEFORE,
    OF_SURVEY_DAY,
    Column,
    Dataset,
    ParentDataset,
    Role,
    parquet,
)

AI_POLICY = pl.Struct({"bot": pl.String(), "policy": pl.String(), "own": pl.Boolean()})

DOMAIN_SURVEYS = Dataset(
    name="domain_surveys",
    group="domain_metadata",
    description="The survey result of every domain: robots.txt, sitemap, AI policies.",
    row="one surveyed domain",
    place=parquet("domain_surveys/date={date}/part-0.parquet"),
    partitions="survey_day",
    parents=(ParentDataset("domain_metadata", OF_SURVEY_DAY),),
    version=versions.AI_BOTS,
    kinds=frozenset({"parquet"}),
    page="domain_metadata.md",
    explorer="/policies",
    freshness="changes only when research files are uploaded",
    columns=(
        Column("domain", Role.domain, "Registrable domain, `bbc.co.uk`, or an IP address."),
        Column("domain_id", Role.fact, "authority:country:domain."),
        Column("country", Role.fact, "Country of the batch; zz for domains from the crawl."),
        Column("category", Role.fact, "Category of the batch."),
        Column("authority", Role.fact, "Source class: gov, edu, org, media, ..."),
        Column("collected_at", Role.time, "When the survey of the domain ended."),
        Column("outcome", Role.fact, "ok, no_robots, nxdomain, or why it is not finished."),
        Column(
            "final",
            Role.fact,
            "Whether the outcome is final; if not, the survey is tried again.",
            pl.Boolean(),
        ),
        Column("final_origin", Role.links, "Scheme and host that responded; null if none did."),
        Column(
            "robots_status",
            Role.count,
            "HTTP status of robots.txt; null if there was no response.",
            pl.Int32(),
        ),
        Column("robots_exists", Role.fact, "Whether the host has a robots.txt.", pl.Boolean()),
        Column("robots_bytes", Role.count, "Size of the stored robots.txt; null if there is none."),
        Column(
            "robots_is_html",
            Role.fact,
            "Whether a web page was sent instead of robots.txt.",
            pl.Boolean(),
        ),
        Column("tls_failed", Role.fact, "Whether https failed and http was used.", pl.Boolean()),
        Column(
            "crawl_delay_seconds",
            Role.fact,
            "Crawl-delay for our agent; null if none.",
            pl.Float64(),
        ),
        Column("sitemap_url", Role.links, "The sitemap that was requested; null if none."),
        Column(
            "sitemap_status",
            Role.count,
            "HTTP status of the sitemap; null if there was no response.",
            pl.Int32(),
        ),
        Column("sitemap_kind", Role.fact, "urlset, index, txt, rss, atom or invalid."),
        Column(
            "sitemap_urls", Role.count, "Pages listed, including those in fetched child sitemaps."
        ),
        Column("sitemap_children", Role.count, "Child sitemaps listed in an index."),
        Column(
            "sitemap_problems",
            Role.text,
            "Problems of the sitemap, in words.",
            pl.List(pl.String()),
        ),
        Column(
            "elapsed_seconds",
            Role.fact,
            "Response time of the host for robots.txt and sitemap.",
            pl.Float64(),
        ),
        Column(
            "ai_list_version", Role.fact, "Version of the list of AI crawlers; null if not checked."
        ),
        Column(
            "ai_policies",
            Role.fact,
            "Policy of robots.txt for each AI crawler.",
            pl.List(AI_POLICY),
        ),
        Column("raw_file_path", Role.fact, "Research file that names the domain."),
        Column("usage_statements", Role.count, "Statements about use; null if none were read."),
        Column("usage_index", Role.fact, "Verdict on indexing for any crawler."),
        Column("usage_search", Role.fact, "Verdict on search results for any crawler."),
        Column("usage_ai_input", Role.fact, "Verdict on input to AI answers for any crawler."),
        Column("usage_ai_train", Role.fact, "Verdict on AI training for any crawler."),
        Column(
            "llms_txt",
            Role.fact,
            "Whether the site has an llms.txt; null if not asked.",
            pl.Boolean(),
        ),
        Column(
            "managed_robots",
            Role.fact,
            "Whether Cloudflare manages part of robots.txt.",
            pl.Boolean(),
        ),
        Column(
            "news_sitemaps",
            Role.links,
            "Sitemaps of the domain that list news; null if none.",
            pl.List(pl.String()),
        ),
    ),
    partition_columns=(Column("date", Role.day, "Day of the batch, YYYY-MM-DD."),),
)

USAGE_SIGNALS = Dataset(
    name="usage_signals",
    group="domain_metadata",
    description="What each surveyed domain states about the use of its content, one row each.",
    row="one statement of a domain about use",
    place=parquet("usage_signals/date={date}/part-0.parquet"),
    partitions="survey_day",
    parents=(ParentDataset("domain_metadata", OF_SURVEY_DAY),),
    version=versions.USAGE_SIGNALS,
    kinds=frozenset({"parquet"}),
    page="domain_metadata.md",
    explorer="/policies",
    freshness="changes only when research files are uploaded",
    columns=(
        Column("domain", Role.domain, "Registrable domain."),
        Column("country", Role.fact, "Country of the batch."),
        Column("category", Role.fact, "Category of the batch."),
        Column("collected_at", Role.time, "When the survey of the domain ended."),
        Column("system", Role.fact, "content_signal, content_usage, tdmrep, rsl, ..."),
        Column("source", Role.links, "URL of the file, or of the page and its header or element."),
        Column("label", Role.fact, "What is spoken about: ai-train, noai, tdm-reservation, ..."),
        Column("value", Role.text, "Parsed value; null if it has no meaning in its system."),
        Column(
            "agents", Role.text, "Crawlers that it binds; empty means all.", pl.List(pl.String())
        ),
        Column("path", Role.text, "Pattern of the paths that it covers."),
        Column("raw", Role.text, "The text as stated, at most 500 characters."),
        Column("flags", Role.fact, "What is unusual about the statement.", pl.List(pl.String())),
        Column("fetched_at", Role.time, "When its source was received."),
    ),
    partition_columns=(Column("date", Role.day, "Day of the batch, YYYY-MM-DD."),),
)

AI_POLICY_CHANGES = Dataset(
    name="ai_policy_changes",
    group="domain_metadata",
    description="Policies and statements about AI use that differ from the previous survey.",
    row="one crawler whose treatment by a domain has changed",
    place=parquet("ai_policy_changes/date={date}/part-0.parquet"),
    partitions="survey_day",
    parents=(
        ParentDataset("domain_surveys", ALL_BEFORE),
        ParentDataset("usage_signals", ALL_BEFORE),
    ),
    version=versions.AI_BOTS,
    kinds=frozenset({"parquet"}),
    page="domain_metadata.md",
    explorer="/policies",
    freshness="changes only when research files are uploaded",
    columns=(
        Column("domain", Role.domain, "Registrable domain."),
        Column("country", Role.fact, "Country of the batch."),
        Column("bot", Role.fact, "AI crawler, as robots.txt names it; `*` for all crawlers."),
        Column("operator", Role.fact, "Operator of the crawler; null for all crawlers."),
        Column(
            "before",
            Role.text,
            "disallow_all, partial, allow or unspecified; for other signals the stated value.",
        ),
        Column("after", Role.text, "The policy or value now; null if nothing is stated."),
        Column("change", Role.fact, "blocked, opened or changed."),
        Column("before_date", Role.fact, "Day of the earlier survey, YYYY-MM-DD."),
        Column("signal", Role.fact, "robots for access rules, else the system of the statement."),
        Column("label", Role.fact, "Label of the statement; null for access rules."),
        Column("raw_diff", Role.text, "Lines that disappeared (-) and appeared (+)."),
    ),
    partition_columns=(Column("date", Role.day, "Day of the newer survey, YYYY-MM-DD."),),
)
