"""Weights that fit the features that the code computes, and the guessed category."""

import numpy as np
import pytest

from news_platform.articles.article import guess_category
from news_platform.articles.block_features import StatedTexts, block_table
from news_platform.articles.block_model import WORD_COLUMNS, load_model, word_matrix
from news_platform.articles.body import page_blocks
from news_platform.html.decode import parse_document
from news_platform_tests.rss.web import page


def test_the_weights_fit_the_features() -> None:
    root = parse_document(page("the bridge"))
    assert root is not None
    blocks = page_blocks(root)
    table, model = block_table(blocks, StatedTexts()), load_model()
    width = len(table.columns) + len(WORD_COLUMNS)
    assert int(model.trees.features.max()) < width
    # A model of fewer features than the code computes was trained before the last of them.
    assert int(model.trees.features.max()) >= width - len(WORD_COLUMNS)
    assert model.scores(blocks, table).dtype == np.int64
    assert word_matrix(blocks, table, model.odds).dtype == np.int64


@pytest.mark.parametrize(
    ("facts", "category"),
    [
        ({"url": "https://x.example/sport/a"}, "sports"),
        ({"section": "Politik"}, "politics"),
        ({"url": "https://x.example/sport/golf", "section": "Politics"}, "politics"),
        ({"url": "https://x.example/politics/football", "text": ""}, "politics"),
        ({"url": "https://x.example/news/football-star-sues-senator"}, "other"),
        ({"section": "Fußball"}, "sports"),
        ({"section": "Спорт"}, "sports"),
        ({"section": "Política"}, "politics"),
        ({"section": "Tech", "text": "The team won the match in the league cup."}, "other"),
        ({"section": "Food", "url": "https://x.example/sport/a"}, "other"),
        ({"tags": ("Golf", "Volkswagen")}, "other"),
        ({"tags": ("Berlin", "Politik")}, "politics"),
        ({"text": "The senator said the government lost the vote in parliament."}, "politics"),
        ({"text": "The striker scored two goals, and the coach praised the team."}, "sports"),
    ],
)
def test_the_category_is_stated_or_spoken_of_by_words(
    facts: dict[str, object], category: str
) -> None:
    given = {"url": "", "section": "", "tags": (), "title": "", "text": "", **facts}
    assert guess_category(**given) == category  # type: ignore[arg-type]  # a table of cases
