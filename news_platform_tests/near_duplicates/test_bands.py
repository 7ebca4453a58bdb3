"""The band table on SQLite and PostgreSQL: arriving documents, revisions, merges, two writers."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.near_duplicates.bands import (
    BANDS,
    METADATA,
    TEXTS,
    Assignment,
    BandTable,
    assign_clusters,
)
from news_platform.near_duplicates.batch import cluster_documents
from news_platform.near_duplicates.sketch import SketchOptions, TextDocument
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform_tests.near_duplicates.stories import documents, story, variant

OPTIONS = SketchOptions()


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/l.sqlite" if is_sqlite else request.getfixturevalue("postgres_url")
    opened = open_engine(url)
    METADATA.create_all(opened)
    yield opened
    opened.dispose()


def assign(
    engine: sa.Engine, found: list[TextDocument], *, collection: str = "articles"
) -> list[Assignment]:
    assigned = assign_clusters(found, engine=engine, collection=collection, options=OPTIONS)
    return [one for one in assigned if isinstance(one, Assignment)]


def clusters(engine: sa.Engine, *, collection: str = "articles") -> dict[str, str]:
    with engine.connect() as connection:
        found = BandTable(connection, collection, OPTIONS).assignments()
    return {one.document_id: one.cluster_id for one in found}


def count(engine: sa.Engine, table: sa.Table) -> int:
    with engine.connect() as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0)


def test_an_alike_text_joins_the_cluster_of_the_first(engine: sa.Engine) -> None:
    first, other, second = assign(
        engine, documents(a=story(1), b=story(2), c=variant(1, changed=5))
    )
    assert second.cluster_id == first.cluster_id != other.cluster_id
    assert (first.jaccard, other.jaccard) == (None, None)
    assert second.jaccard == pytest.approx(285 / 311, abs=0.01)


def test_the_members_of_a_cluster_come_in_their_order(engine: sa.Engine) -> None:
    found = assign(engine, documents(b=story(1), a=variant(1, changed=5), c=story(1)))
    with engine.connect() as connection:
        table = BandTable(connection, "articles", OPTIONS)
        assert table.members(found[0].cluster_id) == ["b", "a", "c"]


def test_documents_may_come_in_many_batches(engine: sa.Engine) -> None:
    (first,) = assign(engine, documents(a=story(1)))
    (second,) = assign(engine, documents(b=story(1).upper()))
    assert second == Assignment("b", first.cluster_id, 1.0)


def test_the_same_document_again_changes_nothing(engine: sa.Engine) -> None:
    texts = documents(a=story(1), b=variant(1, changed=5), c=story(1))
    before = assign(engine, texts), count(engine, TEXTS), count(engine, BANDS)
    assert (assign(engine, texts), count(engine, TEXTS), count(engine, BANDS)) == before


def test_the_same_text_shares_its_band_keys(engine: sa.Engine) -> None:
    assign(engine, [TextDocument(str(number), story(1)) for number in range(50)])
    assert count(engine, BANDS) == 32


def test_a_revised_document_moves_to_where_its_text_belongs(engine: sa.Engine) -> None:
    one, two, _ = assign(engine, documents(a=story(1), b=story(2), c=variant(1, changed=3)))
    (revised,) = assign(engine, documents(c=variant(2, changed=3)))
    assert revised.cluster_id == two.cluster_id != one.cluster_id
    assert count(engine, TEXTS) == 3
    assert count(engine, BANDS) == 3 * 32


def test_a_revised_first_document_leaves_its_cluster_its_name(engine: sa.Engine) -> None:
    assigned = assign(engine, documents(a=story(1), b=variant(1, changed=3)))
    (revised,) = assign(engine, documents(a=story(2)))
    assert revised.cluster_id != assigned[1].cluster_id
    assert clusters(engine) == {"a": revised.cluster_id, "b": assigned[1].cluster_id}


def test_a_twin_inherits_the_keys_of_a_revised_document(engine: sa.Engine) -> None:
    first, _ = assign(engine, documents(a=story(1), b=story(1)))
    assign(engine, documents(a=story(2)))
    (late,) = assign(engine, documents(c=variant(1, changed=5)))
    assert late.cluster_id == first.cluster_id


def test_clusters_that_turn_out_to_be_one_take_the_elders_name(engine: sa.Engine) -> None:
    words = story(1, words=500).split()
    left, right, bridge = (" ".join(words[start : start + 400]) for start in (0, 80, 40))
    first, second = assign(engine, documents(z=left, a=right))
    assert first.cluster_id != second.cluster_id
    (third,) = assign(engine, documents(m=bridge))
    assert set(clusters(engine).values()) == {third.cluster_id} == {first.cluster_id}


def test_collections_never_meet(engine: sa.Engine) -> None:
    (ours,) = assign(engine, documents(a=story(1)), collection="articles")
    (theirs,) = assign(engine, documents(b=story(1)), collection="pages")
    assert theirs.jaccard is None
    assert clusters(engine) == {"a": ours.cluster_id}


def test_sketches_of_other_options_never_meet(engine: sa.Engine) -> None:
    assign(engine, documents(a=story(1)))
    other = SketchOptions(shingle_words=4)
    (found,) = assign_clusters(
        documents(b=story(1)), engine=engine, collection="articles", options=other
    )
    assert isinstance(found, Assignment)
    assert found.jaccard is None


def test_the_assignments_come_back_in_their_order(engine: sa.Engine) -> None:
    assigned = assign(engine, documents(b=story(1), a=variant(1, changed=5), c=story(2)))
    with engine.connect() as connection:
        assert BandTable(connection, "articles", OPTIONS).assignments() == assigned


def test_short_texts_are_left_out(engine: sa.Engine) -> None:
    assert assign(engine, documents(a="Page not found")) == []
    assert count(engine, TEXTS) == 0


def test_the_table_and_the_batch_find_the_same_groups(engine: sa.Engine) -> None:
    found = [TextDocument(f"{seed}/page", story(seed)) for seed in range(30)]
    found += [TextDocument(f"{seed}/edit", variant(seed, changed=seed)) for seed in range(30)]
    assign(engine, found)
    by_table: dict[str, set[str]] = {}
    for document_id, name in clusters(engine).items():
        by_table.setdefault(name, set()).add(document_id)
    by_batch: dict[str, set[str]] = {}
    for member in cluster_documents(lambda: found, options=OPTIONS).members:
        by_batch.setdefault(member.cluster_id, set()).add(member.document_id)
    twos = [group for group in by_table.values() if len(group) > 1]
    assert sorted(map(sorted, twos)) == sorted(map(sorted, by_batch.values()))


def test_the_migration_makes_the_tables_that_the_code_declares(engine: sa.Engine) -> None:
    METADATA.drop_all(engine)
    migrate(engine)
    inspector = sa.inspect(engine)
    for table in (TEXTS, BANDS):
        made = {column["name"]: column["nullable"] for column in inspector.get_columns(table.name)}
        assert made == {column.name: column.nullable for column in table.columns}
        indexes = {index["name"] for index in inspector.get_indexes(table.name)}
        assert {index.name for index in table.indexes} <= indexes
    assert len(assign(engine, documents(a=story(1), b=variant(1, changed=5)))) == 2


def test_two_writers_at_once_miss_no_twin(engine: sa.Engine) -> None:
    def write(kind: str) -> None:
        for seed in range(15):
            assign(engine, [TextDocument(f"{seed}/{kind}", variant(seed, changed=ord(kind) % 5))])

    writers = [threading.Thread(target=write, args=(kind,)) for kind in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = clusters(engine)
    assert len(found) == 60
    assert len(set(found.values())) == 15
