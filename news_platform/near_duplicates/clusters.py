"""Groups of alike documents from verified pairs: whoever is alike to a member is a member."""

import hashlib


def cluster_id(document_id: str, text_key: str) -> str:
    """Return the name of the cluster that this document, with this text, was the first of."""
    named = f"{document_id}\n{text_key}".encode("utf-8", "replace")
    return hashlib.sha256(named).hexdigest()[:16]


class Groups:
    """Numbers from 0 on, joined into groups; the smallest number of a group stands for it."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def join(self, left: int, right: int) -> None:
        """Make one group of the groups of two numbers."""
        low, high = sorted((self.first(left), self.first(right)))
        self._parents[high] = low

    def first(self, number: int) -> int:
        """Return the smallest number of the group."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]  # halve the path as we go
            number = parents[number]
        return number
