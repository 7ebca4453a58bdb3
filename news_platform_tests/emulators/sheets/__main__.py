"""`python -m news_platform_tests.emulators.sheets --port N`: run the emulator until Ctrl-C.

It prints its URL on the first line and, with --fault-port, that of the fault port on the second.
"""

from contextlib import ExitStack
from pathlib import Path
from threading import Event

import click

from news_platform_tests.emulators.relay import serve
from news_platform_tests.emulators.sheets.fault_port import FaultPort
from news_platform_tests.emulators.sheets.faults import Faults
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)


@click.command()
@click.option("--port", default=0, help="Loopback port; 0 picks a free one.")
@click.option("--fault-port", type=int, help="Loopback port of the fault port; 0 picks a free one.")
@click.option(
    "--key", type=click.Path(dir_okay=False, path_type=Path), help="Write a key file here."
)
@click.option("--fault-share", default=0.0, help="Share of calls that fail: 429, 503, late.")
@click.option("--seed", default=0, help="Seed of the failing calls.")
@click.option("--window-seconds", default=60.0, help="Window of 60 reads and 60 writes.")
@click.option("--max-request-bytes", default=10_485_760, help="Larger requests are answered 413.")
def main(port: int, fault_port: int | None, key: Path | None, **chosen: float) -> None:
    """Serve Google Sheets on loopback."""
    emulator = SheetsEmulator(
        faults=Faults(share=chosen["fault_share"], seed=int(chosen["seed"])),
        window_seconds=chosen["window_seconds"],
        max_request_bytes=int(chosen["max_request_bytes"]),
    )
    with ExitStack() as servers:
        url = servers.enter_context(sheets_server(emulator, port=port))
        if key is not None:
            key.write_text(service_account_key(url), encoding="utf-8")
        click.echo(url)
        if fault_port is not None:
            click.echo(servers.enter_context(serve(FaultPort(emulator), port=fault_port)))
        Event().wait()


if __name__ == "__main__":
    main()
