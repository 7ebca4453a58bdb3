"""What the platform knows about one URL, domain or feed: the answer of `explain`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from news_platform.datasets.dataset import Dataset, RowSentence

SubjectKind = Literal["url", "domain", "feed"]

# States that say where something is not; an answer of these alone knows nothing.
UNKNOWN_STATES = frozenset({"absent", "unknown"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that the platform knows about a URL, a domain or a feed.

    `dataset` is where it was found, `state` a short machine word, `text` one sentence for people.
    `source` says where the evidence lies: a path under the root, a table of the ledger,
    `WARC@offset+length`, or a robots.txt and its line.
    """

    dataset: str
    state: str
    text: str
    at: datetime | None = None
    source: str = ""
    details: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_row(cls, dataset: Dataset, row: Mapping[str, object]) -> "Evidence":
        """Return what the sentence of a dataset says about one of its rows."""
        sentence = dataset.sentence or RowSentence(f"{dataset.name} has {dataset.row}.")
        values = {name: "unknown" if value is None else value for name, value in row.items()}
        source = sentence.source.format(**values)
        is_placed = source and "unknown" not in source
        return cls(
            dataset.name,
            sentence.state,
            sentence.text.format(**values).replace("_", " "),
            at=_moment(row.get(sentence.at)),
            source=source if is_placed else f"{dataset.name} {row.get('day', '')}".strip(),
            details={name: str(value) for name, value in row.items() if value is not None},
        )

    @property
    def is_known(self) -> bool:
        """Return whether it says that something is there, not that it is missing."""
        return self.state not in UNKNOWN_STATES


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Explanation:
    """All evidence about a subject in the order of the pipeline, and what to do next.

    `subject` is the canonical spelling of what was asked for. `advice` is empty if all is well.
    """

    subject: str
    kind: SubjectKind
    evidence: tuple[Evidence, ...]
    known: bool
    advice: tuple[str, ...] = ()
