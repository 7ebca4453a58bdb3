"""The manifest of an export in, its dataset card (README.md) and its JSON out."""

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from news_platform.corpus.export.filtering import PRESETS, ExportSelection, FileFormat
from news_platform.corpus.export.shards import Shard

FORMAT = 2
GENERATOR = "news-platform corpus export"
LICENSE = "other: each text belongs to its publisher"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LARGEST = ((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"))


@dataclass(frozen=True, slots=True)
class ExportManifest:
    """What an export holds and what it leaves out; nothing in it depends on time or place.

    `considered` articles are `rows` and all that were `dropped`. `verdicts` counts exported
    articles by rule and by what the publisher stated.
    """

    selection: ExportSelection
    shards: Sequence[Shard]
    considered: int
    dropped: Mapping[str, int]
    verdicts: Mapping[str, Mapping[str, int]]
    languages: Mapping[str, tuple[int, int]]
    sources: Mapping[str, int]
    domains: int
    tokenizer: str | None
    removal: str
    file_format: FileFormat = "parquet"
    program: str = ""
    # What was obeyed: a fingerprint of all requests, and the opt-out lists by version.
    takedowns: str = ""
    lists: Sequence[tuple[str, int]] = ()
    # The SHA-256 of the manifests of earlier exports whose texts are left out.
    excepted: Collection[str] = ()
    domain_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def words(self) -> int:
        """Return the words of all texts."""
        return sum(shard.words for shard in self.shards)

    @property
    def rows(self) -> int:
        """Return the number of exported articles."""
        return sum(shard.rows for shard in self.shards)

    @property
    def tokens(self) -> int | None:
        """Return the number of tokens, or None without a tokenizer."""
        return sum(shard.tokens or 0 for shard in self.shards) if self.tokenizer else None

    def as_json(self) -> Mapping[str, object]:
        """Return the manifest as one JSON document."""
        return {
            "format": FORMAT,
            "generator": GENERATOR,
            "program": self.program,
            "command": " ".join(command_words(self.selection, self.file_format)),
            "license": LICENSE,
            "format_of_files": self.file_format,
            "selection": self.selection.as_json(),
            "takedowns": self.takedowns,
            "lists": [list(one) for one in self.lists],
            "excepted": sorted(self.excepted),
            "articles": self.rows,
            "words": self.words,
            "tokens": self.tokens,
            "tokenizer": self.tokenizer,
            "considered": self.considered,
            "dropped": dict(self.dropped),
            "policies": {rule: dict(found) for rule, found in self.verdicts.items()},
            "languages": {name: count for name, (count, _) in self.languages.items()},
            "sources": dict(self.sources),
            "domains": self.domains,
            "shards": [
                {
                    "path": shard.path,
                    "sha256": shard.sha256,
                    "bytes": shard.bytes,
                    "articles": shard.rows,
                    "words": shard.words,
                    "tokens": shard.tokens,
                }
                for shard in self.shards
            ],
        }


def command_words(selection: ExportSelection, file_format: FileFormat) -> Iterator[str]:
    """Yield the words of the command that exports a selection, but for root and output."""
    yield from ("news-platform", "corpus", "export")
    if selection.days:
        yield from ("--from", selection.days[0], "--to", selection.days[-1])
    for option, values in (
        ("--language", selection.languages),
        ("--domain", selection.domains),
        ("--category", selection.categories),
        ("--without", selection.without_flags),
        ("--policy", tuple(str(rule) for rule in selection.rules if rule.bot not in PRESETS)),
        ("--for", tuple(rule.bot for rule in selection.rules if rule.bot in PRESETS)),
    ):
        yield from (word for value in sorted(values) for word in (option, shlex.quote(value)))
    if not selection.rules:
        yield "--no-policy"
    if selection.strict:
        yield "--strict"
    yield from ("--min-words", str(selection.min_words), "--keep", selection.keep)
    yield from ("--format", file_format)


def is_ours(manifest: bytes) -> bool:
    """Return whether a manifest.json was written by an export."""
    try:
        return bool(json.loads(manifest)["generator"] == GENERATOR)
    except (ValueError, KeyError, TypeError):
        return False


def card_text(manifest: ExportManifest, provenance: Iterable[str], *, is_signed: bool) -> str:
    """Return README.md, with the metadata that Hugging Face reads."""
    signed = "signed by its exporter (manifest.sig)" if is_signed else "not signed"
    lines = (
        *_front_matter(manifest),
        *_body(manifest),
        "\n## Provenance\n",
        f"manifest.json names every file by SHA-256 and is {signed}. `python verify_export.py . "
        "--key PUBLIC.pem` checks it, with `--warcs FOLDER` also each row against its record.\n",
        *provenance,
    )
    return "\n".join(lines) + "\n"


def _front_matter(manifest: ExportManifest) -> Iterator[str]:
    pattern = f"data/train-*{manifest.shards[0].path[manifest.shards[0].path.index('.') :]}"
    yield "---"
    yield "language:"
    # Hugging Face reads `no` as a boolean without the quotes.
    yield from (f'- "{name}"' for name in manifest.languages if name)
    yield "license: other\nlicense_name: publishers-own"
    yield f"size_categories:\n- {_size(manifest.rows)}"
    yield "task_categories:\n- text-generation"
    yield "configs:\n- config_name: default\n  data_files:\n  - split: train"
    yield f"    path: {pattern}"
    yield "---"


def _size(rows: int) -> str:
    return next((name for limit, name in (*_SIZES, *_LARGEST) if rows < limit), "100M<n<1B")


def _body(manifest: ExportManifest) -> Iterator[str]:
    chosen = manifest.selection
    yield "\n# News articles\n"
    yield (
        f"{manifest.rows:,} articles of {manifest.domains:,} domains, from {chosen.days[0]} to "
        f"{chosen.days[-1]}, each text once. Texts belong to their publishers."
    )
    yield "\n## Sources\n"
    yield "| source | articles |\n|---|---:|"
    yield from (f"| {name} | {count:,} |" for name, count in manifest.sources.items())
    yield (
        "\n`crawl` is CC-NEWS of Common Crawl: `warc`, `record_offset` and `record_length` lead "
        "back to the stored response. `feed` is an article found through its publisher's feed."
    )
    yield "\n## Languages\n"
    yield from _language_lines(manifest)
    yield "\n## Selection\n"
    yield from (f"- {name}: {_shown(value)}" for name, value in chosen.as_json().items())
    yield "\n## Publishers' statements\n"
    yield from _policy_lines(manifest)
    yield "\n## Left out\n"
    yield f"Of {manifest.considered:,} articles of these days:\n"
    yield "| reason | articles |\n|---|---:|"
    yield from (f"| {name} | {count:,} |" for name, count in manifest.dropped.items())
    yield "\n## How to cite\n"
    yield (
        "Cite Common Crawl's CC-NEWS for articles of the crawl and the publisher for each text, "
        f"and this export by the SHA-256 sums in manifest.json ({len(manifest.shards)} shards)."
    )
    yield "\n## How to ask for removal\n"
    yield manifest.removal


def _language_lines(manifest: ExportManifest) -> Iterator[str]:
    if manifest.tokenizer is None:
        yield "Tokens were not counted: the tokenizer was not installed.\n"
    yield "| language | articles | words |\n|---|---:|---:|"
    for name, (count, words) in manifest.languages.items():
        yield f"| {name or 'unknown'} | {count:,} | {words:,} |"
    if manifest.tokenizer is not None:
        yield f"\n{manifest.tokens:,} tokens of `{manifest.tokenizer}`."


def _policy_lines(manifest: ExportManifest) -> Iterator[str]:
    if not manifest.verdicts:
        yield "No policy was applied: what publishers state about use was not asked."
        return
    yield (
        "Articles whose publisher refused one of these uses to a crawler, when the page was "
        "fetched or since, are left out, also where statements conflict."
        + (" So are those about whom nothing is known." if manifest.selection.strict else "")
    )
    yield "\n| crawler and purpose | stated | articles |\n|---|---|---:|"
    for rule, found in manifest.verdicts.items():
        yield from (f"| {rule} | {verdict} | {count:,} |" for verdict, count in found.items())


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "any"
    return "any" if value is None else str(value)
