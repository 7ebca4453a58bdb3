"""What the platform knows about one URL, domain or feed: the answer of `explain`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

SubjectKind = Literal["url", "domain", "feed"]

# States that say where something is not; an answer of these alone knows nothing.
UNKNOWN_STATES = frozenset({"absent", "unknown"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that the platform knows about a URL, a domain or a feed.

    `room` is the feature or dataset, `state` a short machine word, `text` one sentence for people.
    `source` says where the evidence lies: a path under the root, a table of the ledger,
    `WARC@offset+length`, or a robots.txt and its line.
    """

    room: str
    state: str
    text: str
    at: datetime | None = None
    source: str = ""
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Return whether it says that something is there, not that it is missing."""
        return self.state not in UNKNOWN_STATES


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
