"""The guessed category of an article: by labels, else by words."""

import pytest

from news_platform.articles.article import guess_category


@pytest.mark.parametrize(
    ("facts", "category"),
    [
        ({"url": "https://x.example/sport/a"}, "sports"),
        ({"section": "Politik"}, "politics"),
        ({"tags": ("NFL",)}, "sports"),
        ({"url": "https://x.example/sport/golf-course", "section": "Politics"}, "politics"),
        ({"url": "https://x.example/politics/football", "text": ""}, "other"),
        ({"text": "The senator said the government lost the vote in parliament."}, "politics"),
        ({"text": "The coach praised the team after the match and the late goal."}, "sports"),
        ({"text": "A recipe for soup with carrots and leek."}, "other"),
        ({"text": "The president watched the game."}, "other"),
    ],
)
def test_the_topic_is_named_by_labels_or_spoken_of_by_words(
    facts: dict[str, object], category: str
) -> None:
    given = {"url": "", "section": "", "tags": (), "title": "", "text": "", **facts}
    assert guess_category(**given) == category  # type: ignore[arg-type]  # a table of cases
