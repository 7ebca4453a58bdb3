"""Exports: what is chosen, what is dropped and why, the files, and how they are published."""

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from bpe_openai import get_encoding  # type: ignore[import-untyped]  # has no stubs

from news_platform.corpus.checks import export_problems
from news_platform.corpus.export.filtering import ExportSelection, Stated, UsageRule
from news_platform.corpus.export.pipeline import (
    VOCABULARY,
    ExportOptions,
    export_corpus,
    load_tokenizer,
)
from news_platform.corpus.export.publish import (
    build_month,
    current_version,
    publish_version,
    replacing_folder,
    version_files,
)
from news_platform.corpus.pipeline import crawl_dataset
from news_platform.datasets.corpus import TRAINING_EXPORT
from news_platform.errors import InputError
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, stale_units, wanted_inputs
from news_platform_tests.corpus.articles import article, small_corpus, store_articles
from news_platform_tests.takedowns.asked import AskedDuringBuild, target

DAYS = ("2025-11-01", "2025-11-02")
TRAIN = UsageRule("GPTBot", "ai_train")
OPTIONS = ExportOptions()
ALL = ExportSelection(days=DAYS)


def stated(url: str, rule: UsageRule, at: datetime) -> Stated:
    known = {"a.example": "allow", "b.example": "refuse", "d.example": "conflicting"}
    domain = url.split("/")[2]
    return Stated(known.get(domain, "unknown"), at if domain in known else None)


@pytest.fixture
def corpus(local_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    small_corpus(local_store, tmp_path)
    return local_store


def exported(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(sorted((folder / "data").iterdir()))


def test_each_text_is_exported_once_and_the_rest_is_counted(
    corpus: ObjectStore, tmp_path: Path
) -> None:
    manifest = export_corpus(corpus, tmp_path / "out", ALL, OPTIONS)
    found = exported(tmp_path / "out")
    assert found.select("day", "url").rows() == [
        ("2025-11-01", "https://a.example/1"),
        ("2025-11-01", "https://b.example/2"),
        ("2025-11-01", "https://c.example/short"),
        ("2025-11-02", "https://d.example/1"),
        ("2025-11-02", "https://e.example/odd"),
        ("2025-11-02", "https://f.example/feed"),
    ]
    assert manifest.dropped == {"duplicate_address": 1, "duplicate_text": 1, "paywalled": 1}
    assert manifest.considered == manifest.rows + sum(manifest.dropped.values()) == 9
    assert manifest.sources == {"crawl": 5, "feed": 1}
    assert found["text"].n_unique() == found.height


def test_the_longest_of_several_versions_is_kept_if_asked(
    corpus: ObjectStore, tmp_path: Path
) -> None:
    export_corpus(corpus, tmp_path / "out", replace(ALL, keep="longest"), OPTIONS)
    texts = dict(exported(tmp_path / "out").select("url", "text").rows())
    assert texts["https://a.example/1"].endswith("updated")
    assert "https://b.example/copy" in texts


def test_near_identical_texts_are_one(corpus: ObjectStore, tmp_path: Path) -> None:
    export_corpus(corpus, tmp_path / "one", ALL, OPTIONS)
    rows = exported(tmp_path / "one")
    chosen = rows.filter(pl.col("domain").is_in(["b.example", "e.example"]))
    clusters = chosen.select(
        "source", date="day", url_hash="id", cluster_id=pl.lit("0123456789abcdef")
    )
    manifest = export_corpus(
        corpus, tmp_path / "two", ALL, replace(OPTIONS, clusters_of=lambda _: clusters)
    )
    exported_rows = exported(tmp_path / "two")
    assert manifest.dropped["near_duplicate"] == 1
    assert set(rows["domain"]) - set(exported_rows["domain"]) == {"e.example"}


@pytest.mark.parametrize(
    ("change", "domains", "reasons"),
    [
        ({"domains": ["F.example."]}, ["f.example"], {"other_domain": 8}),
        (
            {"min_words": 100},
            ["a.example", "d.example"],
            {"duplicate_address": 1, "duplicate_text": 1, "few_words": 5},
        ),
        (
            {"without_flags": ["no_title"], "domains": ["e.example", "f.example"]},
            ["f.example"],
            {"other_domain": 7, "quality_no_title": 1},
        ),
    ],
    ids=["domain", "words", "flags"],
)
def test_a_selection_drops_for_one_reason_each(
    corpus: ObjectStore,
    tmp_path: Path,
    change: dict[str, object],
    domains: list[str],
    reasons: dict[str, int],
) -> None:
    chosen = replace(ALL, **change)  # type: ignore[arg-type]  # fields by name
    manifest = export_corpus(corpus, tmp_path / "out", chosen, OPTIONS)
    assert exported(tmp_path / "out")["domain"].to_list() == domains
    assert manifest.dropped == reasons


def test_refusals_and_conflicts_are_left_out_and_unknown_only_if_strict(
    corpus: ObjectStore, tmp_path: Path
) -> None:
    options = replace(OPTIONS, stated_usage=stated)
    asked = replace(ALL, rules=(TRAIN,))
    manifest = export_corpus(corpus, tmp_path / "lenient", asked, options)
    found = exported(tmp_path / "lenient")
    assert set(found["domain"]) == {"a.example", "c.example", "e.example", "f.example"}
    assert manifest.dropped["refused"] == 3
    assert manifest.verdicts == {"GPTBot:ai_train": {"allow": 1, "unknown": 3}}
    usage = found.filter(pl.col("domain") == "a.example")["usage"].to_list()[0]
    assert usage[0]["verdict"] == "allow"
    assert usage[0]["surveyed_at"] == found.row(0, named=True)["fetched_at"]
    strict = export_corpus(corpus, tmp_path / "strict", replace(asked, strict=True), options)
    assert set(exported(tmp_path / "strict")["domain"]) == {"a.example"}
    assert strict.dropped["unknown_policy"] == 3


@pytest.mark.parametrize("file_format", ["parquet", "jsonl"])
def test_the_same_selection_gives_the_same_bytes(
    corpus: ObjectStore, tmp_path: Path, file_format: str
) -> None:
    options = ExportOptions(
        file_format=file_format,  # type: ignore[arg-type]  # one of the formats
        shard_bytes=1,
    )
    for name in ("one", "two"):
        export_corpus(corpus, tmp_path / name, ALL, options)
    one, two = (
        {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    manifest = json.loads(one["manifest.json"])
    for shard in manifest["shards"]:
        body = one[shard["path"]]
        assert (len(body), hashlib.sha256(body).hexdigest()) == (shard["bytes"], shard["sha256"])
    assert sum(shard["articles"] for shard in manifest["shards"]) == manifest["articles"] == 6


def test_json_lines_hold_the_same_rows(corpus: ObjectStore, tmp_path: Path) -> None:
    export_corpus(corpus, tmp_path / "out", ALL, replace(OPTIONS, file_format="jsonl"))
    (path,) = (tmp_path / "out" / "data").iterdir()
    assert path.name == "train-00000-of-00001.jsonl.zst"
    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        lines = [json.loads(line) for line in stream.read().splitlines()]
    assert [line["domain"][0] for line in lines] == ["a", "b", "c", "d", "e", "f"]
    assert lines[0]["fetched_at"] == "2025-11-01T09:00:00+00:00"


def test_tokens_are_counted_or_the_card_says_that_they_are_not(
    corpus: ObjectStore, tmp_path: Path
) -> None:
    count = load_tokenizer()
    assert count is not None
    assert count("a text that quotes <|endoftext|>") > 5
    manifest = export_corpus(corpus, tmp_path / "with", ALL, replace(OPTIONS, count_tokens=count))
    found = exported(tmp_path / "with")
    assert found["tokens"].to_list() == [count(text) for text in found["text"]]
    assert manifest.tokens == found["tokens"].sum()
    without = export_corpus(corpus, tmp_path / "without", ALL, OPTIONS)
    assert without.tokens is None
    assert "tokens" not in exported(tmp_path / "without").columns
    assert "Tokens were not counted" in (tmp_path / "without" / "README.md").read_text()


def test_a_text_of_any_length_is_counted(local_store: ObjectStore, tmp_path: Path) -> None:
    """The tokenizer's own interface refuses a million characters."""
    texts = {"long": "news today " * 92_000, "other": "A short one. Ünïcödé 新闻 😀."}
    rows = [article(f"https://a.example/{name}", text) for name, text in texts.items()]
    store_articles(local_store, DAYS[0], rows, tmp_path)
    count, encoding = load_tokenizer(), get_encoding(VOCABULARY)
    options = replace(OPTIONS, count_tokens=count)
    manifest = export_corpus(local_store, tmp_path / "out", ALL, options)
    tokens = dict(exported(tmp_path / "out").select("text", "tokens").rows())
    assert tokens[texts["other"]] == len(encoding.encode_ordinary(texts["other"]))
    half = texts["long"][: len(texts["long"]) // 2]
    assert tokens[texts["long"]] == pytest.approx(2 * len(encoding.encode_ordinary(half)), abs=2)
    assert manifest.tokens == sum(tokens.values())


def test_a_day_that_is_not_sorted_gives_the_same_bytes(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    """Joining small files keeps their rows, and not the order of the day."""
    rows = [article(f"https://{n % 7}.example/{n}", f"the text {n} of all") for n in range(90)]
    store_articles(local_store, DAYS[0], rows, tmp_path)
    once = export_corpus(local_store, tmp_path / "sorted", ALL, OPTIONS)
    day = crawl_dataset(local_store)
    shuffled = day.scan().collect().sample(fraction=1, shuffle=True, seed=3)
    day.replace(DAYS[0], [shuffled.slice(0, 50), shuffled.slice(50)], scratch=tmp_path)
    again = export_corpus(local_store, tmp_path / "shuffled", ALL, OPTIONS)
    assert [one.sha256 for one in once.shards] == [one.sha256 for one in again.shards]


def test_hugging_face_datasets_load_an_export(
    corpus: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    datasets = pytest.importorskip("datasets", reason="needs the package `datasets`")
    export_corpus(corpus, tmp_path / "out", ALL, replace(OPTIONS, shard_bytes=1))
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert loaded["train"].num_rows == 6
    assert loaded["train"][0]["url"] == "https://a.example/1"


def test_the_card_names_sources_languages_policies_and_how_to_be_removed(
    corpus: ObjectStore, tmp_path: Path
) -> None:
    options = replace(OPTIONS, stated_usage=stated, removal="Write to desk@news.example.")
    export_corpus(corpus, tmp_path / "out", replace(ALL, rules=(TRAIN,)), options)
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith('---\nlanguage:\n- "en"\nlicense: other\n')
    for text in (
        "4 articles of 4 domains, from 2025-11-01 to 2025-11-02",
        "| crawl | 3 |",
        "| GPTBot:ai_train | unknown | 3 |",
        "| refused | 3 |",
        "Write to desk@news.example.",
    ):
        assert text in card


def test_an_export_needs_a_folder_or_a_place_for_one(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("precious")
    for name, cause in (("notes.txt", "is not a folder"), ("a/b", "create it first")):
        with pytest.raises(InputError, match=cause), replacing_folder(tmp_path / name):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_export_takes_the_place_of_an_earlier_one_in_one_step(
    corpus: ObjectStore, tmp_path: Path
) -> None:
    output = tmp_path / "parent" / "export"
    output.parent.mkdir()
    with replacing_folder(output) as folder:
        export_corpus(corpus, folder, ALL, OPTIONS)
    first = (output / "manifest.json").read_bytes()
    with pytest.raises(RuntimeError), replacing_folder(output) as folder:
        export_corpus(corpus, folder, replace(ALL, languages=["de"]), OPTIONS)
        raise RuntimeError("the writer fails")
    assert (output / "manifest.json").read_bytes() == first
    with replacing_folder(output) as folder:
        export_corpus(corpus, folder, replace(ALL, languages=["de"]), OPTIONS)
    assert (output / "manifest.json").read_bytes() != first
    assert [path.name for path in output.parent.iterdir()] == ["export"]


def test_a_month_is_exported_when_a_day_of_it_changes(corpus: ObjectStore, tmp_path: Path) -> None:
    chosen = ExportSelection(days=(), min_words=50)
    assert wanted_inputs(corpus, TRAINING_EXPORT, chosen).keys() == {"2025-11"}
    report = build_month(corpus, "2025-11", selection=chosen, options=OPTIONS)
    assert report.manifest is not None
    assert report.manifest.rows == 5
    assert built_inputs(corpus, TRAINING_EXPORT) == wanted_inputs(corpus, TRAINING_EXPORT, chosen)
    assert built_inputs(corpus, TRAINING_EXPORT) != wanted_inputs(
        corpus, TRAINING_EXPORT, replace(chosen, min_words=60)
    )
    assert list(export_problems(corpus, "2025-11", selection=chosen, options=OPTIONS)) == []
    rows = [article("https://g.example/new", "a new text " * 30)]
    store_articles(corpus, "2025-11-03", rows, tmp_path)
    assert built_inputs(corpus, TRAINING_EXPORT) != wanted_inputs(corpus, TRAINING_EXPORT, chosen)
    second = build_month(corpus, "2025-11", selection=chosen, options=OPTIONS)
    assert second.manifest is not None
    assert second.manifest.rows == 6
    assert current_version(corpus, "2025-11") == second.version != report.version


def test_a_month_follows_the_surveys_that_its_articles_are_judged_by(corpus: ObjectStore) -> None:
    chosen = ExportSelection(days=(), rules=(TRAIN,))
    build_month(corpus, "2025-11", selection=chosen, options=OPTIONS)

    def is_stale() -> bool:
        return bool(stale_units(corpus, TRAINING_EXPORT, chosen))

    def survey(batch: str, inputs: str) -> None:
        write_marker(corpus, "domain_metadata", batch, inputs=inputs, report={})

    assert not is_stale()
    survey("de|news|2025-12-03", "0" * 16)
    assert is_stale(), "sites that were never surveyed before are judged by their first survey"
    build_month(corpus, "2025-11", selection=chosen, options=OPTIONS)
    survey("de|news|2025-12-10", "0" * 16)
    assert not is_stale(), "a later survey of the same sites judges no article of the month"
    survey("de|news|2025-11-20", "0" * 16)
    assert is_stale()


def test_a_month_without_anything_that_may_be_used_has_no_export(corpus: ObjectStore) -> None:
    chosen = ExportSelection(days=(), min_words=10_000)
    report = build_month(corpus, "2025-11", selection=chosen, options=OPTIONS)
    assert report.manifest is None
    assert current_version(corpus, "2025-11") is None
    assert built_inputs(corpus, TRAINING_EXPORT) == wanted_inputs(corpus, TRAINING_EXPORT, chosen)


def test_a_request_that_comes_during_an_export_leaves_no_version_with_its_rows(
    corpus: ObjectStore,
) -> None:
    chosen = ExportSelection(days=(), min_words=50)
    during = AskedDuringBuild(corpus, "training_export", "domain", "a.example")
    report = build_month(during, "2025-11", selection=chosen, options=OPTIONS)
    assert report.manifest is not None and report.manifest.rows > 0
    assert current_version(corpus, "2025-11") == report.version
    found = ParquetEngine(corpus, TRAINING_EXPORT).find(target("domain", "a.example"))
    assert found == {}
    assert built_inputs(corpus, TRAINING_EXPORT) == wanted_inputs(corpus, TRAINING_EXPORT, chosen)


def test_a_problem_in_an_export_is_found(corpus: ObjectStore, tmp_path: Path) -> None:
    manifest = export_corpus(
        corpus,
        tmp_path / "out",
        replace(ALL, rules=(TRAIN,)),
        replace(OPTIONS, stated_usage=stated),
    )
    path = tmp_path / "out" / manifest.shards[0].path
    rows = pl.read_parquet(path)
    pl.concat([rows.head(1), rows]).write_parquet(path)
    publish_version(corpus, "2025-11", tmp_path / "out")
    urls = rows["url"].to_list()
    today = replace(
        OPTIONS,
        covers=lambda url: url == urls[-1],
        stated_usage=lambda url, *_: Stated("refuse" if url == urls[1] else "allow"),
    )
    chosen = replace(ALL, rules=(TRAIN,))
    problems = list(export_problems(corpus, "2025-11", selection=chosen, options=today))
    assert [problem.rpartition(": ")[2].partition(" ")[2] or problem for problem in problems] == [
        "repeats a text",
        problems[1],
        "is taken down",
    ]
    assert problems[1].endswith("is left out today: refused")
    assert len(version_files(corpus, "2025-11")) == 1
