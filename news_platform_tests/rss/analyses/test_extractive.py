"""Summaries, keywords and topics that need no model."""

import pytest

from news_platform.rss.analyses import (
    MAX_KEYWORDS,
    MAX_SUMMARY_CHARACTERS,
    AnalysedText,
    analyse,
    split_sentences,
)

TEXT = (
    "The city council voted on Tuesday to rebuild the flooded bridge over the river Aller. "
    "Mr. Brandt, the mayor, said that the bridge would cost nine million euros. "
    "It rained a lot this spring, and people talked about the weather at length. "
    "Engineers found cracks in the bridge after the flood in March and closed it to all traffic. "
    "The council expects the new bridge to open within two years of the vote. "
    "Somebody sold ice cream near the town hall while the meeting went on inside."
)


def test_the_summary_is_made_of_sentences_of_the_article_in_their_order() -> None:
    analysis = analyse(AnalysedText("Council rebuilds flooded bridge", TEXT, "en"))
    sentences = split_sentences(TEXT)
    chosen = [sentence for sentence in sentences if sentence in analysis.summary]
    assert " ".join(chosen) == analysis.summary
    assert chosen[0] == sentences[0] and 1 < len(chosen) <= 3
    assert "ice cream" not in analysis.summary and len(analysis.summary) <= MAX_SUMMARY_CHARACTERS


def test_keywords_are_telling_words_as_they_are_written() -> None:
    analysis = analyse(AnalysedText("Council rebuilds flooded bridge", TEXT, "en"))
    assert analysis.keywords[:2] == ("bridge", "council")
    assert not {"the", "and", "of", "to"} & set(analysis.keywords)
    assert len(analysis.keywords) <= MAX_KEYWORDS


def test_german_names_keep_their_capital() -> None:
    text = (
        "Der Stadtrat baut die Brücke. Die Brücke kostet neun Millionen. Der Stadtrat stimmte zu."
    )
    assert analyse(AnalysedText("Brücke", text, "de")).keywords[:2] == ("Brücke", "Stadtrat")


def test_topics_come_from_the_page_and_our_guess() -> None:
    article = AnalysedText("t", "x", "en", section="Local", tags=("Bridges", "Local"))
    assert analyse(article).topics == ("Local", "Bridges")
    article = AnalysedText("t", "x", "en", section="Local", category="politics")
    assert analyse(article).topics == ("politics", "Local")


def test_sentiment_stays_empty_and_the_model_is_named() -> None:
    analysis = analyse(AnalysedText("t", TEXT, "en"))
    assert (analysis.sentiment, analysis.model) == ("", "extractive-1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Who met J. Smith. They talked.", ["Dr. Who met J. Smith.", "They talked."]),
        ("第一句。第二句！", ["第一句。", "第二句！"]),
        ("It cost 3.5 million.\nNew line", ["It cost 3.5 million.", "New line"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_a_chinese_text_gets_its_first_sentences_and_its_tags() -> None:
    text = "市议会周二投票决定重建大桥。" * 2 + "市长说费用为九百万欧元。"
    analysis = analyse(AnalysedText("重建大桥", text, "zh", tags=("大桥",)))
    assert analysis.summary.startswith("市议会周二投票") and analysis.keywords == ("大桥",)


@pytest.mark.parametrize(
    "text", ["", "Short.", "x" * 50_000, "no end of a sentence " * 500, "。" * 99]
)
def test_odd_texts_give_an_analysis_too(text: str) -> None:
    analysis = analyse(AnalysedText("", text, "xx"))
    assert len(analysis.summary) <= MAX_SUMMARY_CHARACTERS
    assert bool(analysis.summary) == bool(text)
