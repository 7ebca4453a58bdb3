"""The survey as a table: one row for each domain of a day's batches."""

import polars as pl

from news_platform.datasets.table import Column, Table

AI_POLICY = pl.Struct({"bot": pl.String(), "policy": pl.String(), "own": pl.Boolean()})

DOMAIN_METADATA_TABLE = Table(
    name="domain_metadata_table",
    room="domain_metadata",
    description="What every surveyed domain answered: robots.txt, sitemap, AI policies.",
    path="domain_metadata_table/date={date}/part-0.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain, `bbc.co.uk`, or an IP address."),
        Column("domain_id", pl.String(), "authority:country:domain."),
        Column("country", pl.String(), "Country of the batch; zz for domains from the crawl."),
        Column("category", pl.String(), "Category of the batch."),
        Column("authority", pl.String(), "Source class: gov, edu, org, media, ..."),
        Column("collected_at", pl.Datetime("us", "UTC"), "When the survey of the domain ended."),
        Column("outcome", pl.String(), "ok, no_robots, nxdomain, or why it is not finished."),
        Column("final", pl.Boolean(), "Whether the outcome is final; else it is tried again."),
        Column("final_origin", pl.String(), "Scheme and host that answered; null: none."),
        Column("robots_status", pl.Int32(), "HTTP status of robots.txt; null: no answer."),
        Column("robots_exists", pl.Boolean(), "Whether there is a robots.txt."),
        Column("robots_bytes", pl.Int64(), "Its stored size; null: none."),
        Column("robots_is_html", pl.Boolean(), "Whether a web page came instead."),
        Column("tls_failed", pl.Boolean(), "Whether https failed and http was asked."),
        Column("crawl_delay_seconds", pl.Float64(), "Asked of us; null: nothing asked."),
        Column("sitemap_url", pl.String(), "The sitemap that was asked for; null: none was."),
        Column("sitemap_status", pl.Int32(), "Its HTTP status; null: no answer."),
        Column("sitemap_kind", pl.String(), "urlset, index, txt, rss, atom or invalid."),
        Column("sitemap_urls", pl.Int64(), "Pages listed, those of fetched children too."),
        Column("sitemap_children", pl.Int64(), "Sitemaps an index names."),
        Column("sitemap_problems", pl.List(pl.String()), "What is wrong with it, in words."),
        Column("elapsed_seconds", pl.Float64(), "Time the host took for robots.txt and sitemap."),
        Column("ai_list_version", pl.String(), "Version of the list of AI crawlers; null: none."),
        Column("ai_policies", pl.List(AI_POLICY), "What robots.txt says to each AI crawler."),
        Column("raw_file_path", pl.String(), "Research file it came from."),
    ),
    partition_columns=(Column("date", pl.String(), "Day of the batch, YYYY-MM-DD."),),
)
