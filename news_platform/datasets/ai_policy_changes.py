"""Who changed what robots.txt says to an AI crawler, day by day."""

import polars as pl

from news_platform.datasets.table import Column, Table

AI_POLICY_CHANGES = Table(
    name="ai_policy_changes",
    room="domain_metadata",
    description="Domains whose policy towards an AI crawler differs from their last survey.",
    path="ai_policy_changes/date={date}/part-0.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain."),
        Column("country", pl.String(), "Country of the batch."),
        Column("bot", pl.String(), "AI crawler, as robots.txt names it."),
        Column("operator", pl.String(), "Who runs the crawler."),
        Column("before", pl.String(), "disallow_all, partial, allow or unspecified."),
        Column("after", pl.String(), "The same, now."),
        Column("change", pl.String(), "blocked, opened or changed."),
        Column("before_date", pl.String(), "Day of the survey compared with, YYYY-MM-DD."),
    ),
    partition_columns=(Column("date", pl.String(), "Day of the newer survey, YYYY-MM-DD."),),
)
