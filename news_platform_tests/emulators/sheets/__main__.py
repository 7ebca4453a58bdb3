"""`python -m news_platform_tests.emulators.sheets --port N`: the emulator alone, until Ctrl-C."""

from pathlib import Path
from threading import Event

import click

from news_platform_tests.emulators.sheets.faults import Faults
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)


@click.command()
@click.option("--port", default=0, help="Port on loopback; 0: a free one.")
@click.option("--key", type=click.Path(dir_okay=False, path_type=Path), help="Write a key here.")
@click.option("--fault-share", default=0.0, help="Share of calls that go wrong: 429, 503, late.")
@click.option("--seed", default=0, help="Which calls go wrong.")
@click.option("--window-seconds", default=60.0, help="In which 60 reads and 60 writes are allowed.")
def main(port: int, key: Path | None, fault_share: float, seed: int, window_seconds: float) -> None:
    """Serve Google Sheets on loopback."""
    faults = Faults(share=fault_share, seed=seed)
    emulator = SheetsEmulator(faults=faults, window_seconds=window_seconds)
    with sheets_server(emulator, port=port) as url:
        if key is not None:
            key.write_text(service_account_key(url), encoding="utf-8")
        click.echo(url)
        Event().wait()


if __name__ == "__main__":
    main()
