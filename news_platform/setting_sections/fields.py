"""The base class of a section of settings, and the kinds of fields that it has."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)


def _split(value: object) -> object:
    """Split a variable's text at commas; leave a tuple given in code as it is."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _split_lower(value: object) -> object:
    names = _split(value)
    return tuple(str(name).lower() for name in names) if isinstance(names, tuple) else names


# pydantic-settings would read a tuple as JSON; people write `a,b`.
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
LowerNames = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_lower)]
# A trailing space in an env file must not turn a switch into an error.
Switch = Annotated[bool, BeforeValidator(lambda it: it.strip() if isinstance(it, str) else it)]


def env(variable: str, text: str, default: Any = None) -> Any:
    """Return a field of a section that is read from a variable."""
    return Field(default, validation_alias=variable, description=text)


def secret(variable: str, text: str) -> Any:
    """Return a field that is read from a variable and never appears in a repr."""
    return Field(None, validation_alias=variable, description=text, repr=False)


class Section(BaseSettings):
    """A group of settings; an instance created in code has the defaults.

    A field without a variable is a constant that only code replaces, such as tests and the demo.
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read no variable implicitly: only `load_settings` does."""
        return (init_settings,)
