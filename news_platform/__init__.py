"""One Dagster asset graph over five news-data systems.

`news_platform.open(root)` gives every dataset under a root by name; it is loaded when first used,
so that importing the package costs nothing.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Offer `open` lazily."""
    if name != "open":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from news_platform.api import open_root

    return open_root
