"""The tables of a day's surveys: domain_surveys, usage_signals and ai_policy_changes."""

import polars as pl

from news_platform.datasets.table import Column, Table

AI_POLICY = pl.Struct({"bot": pl.String(), "policy": pl.String(), "own": pl.Boolean()})

DOMAIN_SURVEYS = Table(
    name="domain_surveys",
    feature="domain_metadata",
    description="The survey result of every domain: robots.txt, sitemap, AI policies.",
    path="domain_surveys/date={date}/part-0.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain, `bbc.co.uk`, or an IP address."),
        Column("domain_id", pl.String(), "authority:country:domain."),
        Column("country", pl.String(), "Country of the batch; zz for domains from the crawl."),
        Column("category", pl.String(), "Category of the batch."),
        Column("authority", pl.String(), "Source class: gov, edu, org, media, ..."),
        Column("collected_at", pl.Datetime("us", "UTC"), "When the survey of the domain ended."),
        Column("outcome", pl.String(), "ok, no_robots, nxdomain, or why it is not finished."),
        Column(
            "final",
            pl.Boolean(),
            "Whether the outcome is final; if not, the survey is tried again.",
        ),
        Column("final_origin", pl.String(), "Scheme and host that responded; null if none did."),
        Column(
            "robots_status", pl.Int32(), "HTTP status of robots.txt; null if there was no response."
        ),
        Column("robots_exists", pl.Boolean(), "Whether the host has a robots.txt."),
        Column("robots_bytes", pl.Int64(), "Size of the stored robots.txt; null if there is none."),
        Column(
            "robots_is_html", pl.Boolean(), "Whether a web page was sent instead of robots.txt."
        ),
        Column("tls_failed", pl.Boolean(), "Whether https failed and http was used."),
        Column("crawl_delay_seconds", pl.Float64(), "Crawl-delay for our agent; null if none."),
        Column("sitemap_url", pl.String(), "The sitemap that was requested; null if none."),
        Column(
            "sitemap_status",
            pl.Int32(),
            "HTTP status of the sitemap; null if there was no response.",
        ),
        Column("sitemap_kind", pl.String(), "urlset, index, txt, rss, atom or invalid."),
        Column(
            "sitemap_urls", pl.Int64(), "Pages listed, including those in fetched child sitemaps."
        ),
        Column("sitemap_children", pl.Int64(), "Child sitemaps listed in an index."),
        Column("sitemap_problems", pl.List(pl.String()), "Problems of the sitemap, in words."),
        Column(
            "elapsed_seconds", pl.Float64(), "Response time of the host for robots.txt and sitemap."
        ),
        Column(
            "ai_list_version",
            pl.String(),
            "Version of the list of AI crawlers; null if not checked.",
        ),
        Column("ai_policies", pl.List(AI_POLICY), "Policy of robots.txt for each AI crawler."),
        Column("raw_file_path", pl.String(), "Research file that names the domain."),
        Column("usage_statements", pl.Int64(), "Statements about use; null if none were read."),
        Column("usage_index", pl.String(), "Verdict on indexing for any crawler."),
        Column("usage_search", pl.String(), "Verdict on search results for any crawler."),
        Column("usage_ai_input", pl.String(), "Verdict on input to AI answers for any crawler."),
        Column("usage_ai_train", pl.String(), "Verdict on AI training for any crawler."),
        Column("llms_txt", pl.Boolean(), "Whether the site has an llms.txt; null if not asked."),
        Column("managed_robots", pl.Boolean(), "Whether Cloudflare manages part of robots.txt."),
        Column(
            "news_sitemaps",
            pl.List(pl.String()),
            "Sitemaps of the domain that list news; null if none.",
        ),
    ),
    partition_columns=(Column("date", pl.String(), "Day of the batch, YYYY-MM-DD."),),
)

USAGE_SIGNALS = Table(
    name="usage_signals",
    feature="domain_metadata",
    description="What each surveyed domain states about the use of its content, one row each.",
    path="usage_signals/date={date}/part-0.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain."),
        Column("country", pl.String(), "Country of the batch."),
        Column("category", pl.String(), "Category of the batch."),
        Column("collected_at", pl.Datetime("us", "UTC"), "When the survey of the domain ended."),
        Column("system", pl.String(), "content_signal, content_usage, tdmrep, rsl, ..."),
        Column("source", pl.String(), "URL of the file, or of the page and its header or element."),
        Column("label", pl.String(), "What is spoken about: ai-train, noai, tdm-reservation, ..."),
        Column("value", pl.String(), "Parsed value; null if it has no meaning in its system."),
        Column("agents", pl.List(pl.String()), "Crawlers that it binds; empty means all."),
        Column("path", pl.String(), "Pattern of the paths that it covers."),
        Column("raw", pl.String(), "The text as stated, at most 500 characters."),
        Column("flags", pl.List(pl.String()), "What is unusual about the statement."),
        Column("fetched_at", pl.Datetime("us", "UTC"), "When its source was received."),
    ),
    partition_columns=(Column("date", pl.String(), "Day of the batch, YYYY-MM-DD."),),
)

AI_POLICY_CHANGES = Table(
    name="ai_policy_changes",
    feature="domain_metadata",
    description="Policies and statements about AI use that differ from the previous survey.",
    path="ai_policy_changes/date={date}/part-0.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain."),
        Column("country", pl.String(), "Country of the batch."),
        Column("bot", pl.String(), "AI crawler, as robots.txt names it; `*` for all crawlers."),
        Column("operator", pl.String(), "Operator of the crawler; null for all crawlers."),
        Column(
            "before",
            pl.String(),
            "disallow_all, partial, allow or unspecified; for other signals the stated value.",
        ),
        Column("after", pl.String(), "The policy or value now; null if nothing is stated."),
        Column("change", pl.String(), "blocked, opened or changed."),
        Column("before_date", pl.String(), "Day of the earlier survey, YYYY-MM-DD."),
        Column("signal", pl.String(), "robots for access rules, else the system of the statement."),
        Column("label", pl.String(), "Label of the statement; null for access rules."),
        Column("raw_diff", pl.String(), "Lines that disappeared (-) and appeared (+)."),
    ),
    partition_columns=(Column("date", pl.String(), "Day of the newer survey, YYYY-MM-DD."),),
)
