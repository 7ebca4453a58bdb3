"""One Dagster asset graph over five news-data systems.

`news_platform.open(root)` returns every dataset under a root by name. It is imported on first use,
so that importing the package is cheap.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import `open` on first use."""
    if name != "open":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from news_platform.api import open_root

    return open_root
