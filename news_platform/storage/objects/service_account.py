"""Read a Google service account key from a setting that holds its text or the path of its file."""

from pathlib import Path

from news_platform.errors import ConfigError


def read_service_account_key(given: str, *, setting: str = "the Google service account key") -> str:
    """Return the JSON text of a key; raise ConfigError if the value is neither text nor a path."""
    if given.lstrip().startswith("{"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not a text file"
        # `from None`, and no path: the value that is not a path may be the key itself.
        raise ConfigError(
            f"cannot read {setting}: expected its text or the path of its file, "
            f"found neither ({cause})"
        ) from None
