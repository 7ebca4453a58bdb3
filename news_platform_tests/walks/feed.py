"""Walk one article from its feed to its row in a Google Sheet, as the schedules would."""

import dagster as dg

from news_platform.definitions import defs
from news_platform_tests.walks.steps import Walk

ASSETS = ("feeds", "pending_articles", "articles", "article_sheets")


def walk() -> None:
    """Run the assets of the feature in order."""
    with dg.DagsterInstance.ephemeral() as instance:
        steps = Walk(defs, instance)
        for asset in ASSETS:
            steps.begin(f"asset `{asset}`")
            steps.run(asset, None)


if __name__ == "__main__":
    walk()
