"""Serve the Dagster UI of a workspace file to loopback names and configured hosts only.

`python -m news_platform.defs.services.webserver` replaces `dagster-webserver`, which answers every
Host header, runs the mutations of any page that a browser shows beside it, and has no option to
change that. It builds Dagster's own app and wraps it. In our image it has the name of the other.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Iterator, Sequence

import click
import uvicorn
from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.log import configure_loggers
from dagster_shared.ipc import interrupt_on_ipc_shutdown_message
from dagster_webserver import cli as dagster_cli
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__

from news_platform.defs.services.dev import dagster_log_format
from news_platform.errors import NewsPlatformError
from news_platform.settings import load_settings
from news_platform.web.allowed_hosts import AllowedHosts, Message, allowed_names

_POLL_MILLISECONDS = 2_000
_LOG = logging.getLogger("dagster-webserver")


@click.command(context_settings={"help_option_names": ["--help"]})
@click.option("--host", "-h", default="127.0.0.1", show_default=True, help="Address to bind to.")
@click.option("--port", "-p", default=3000, show_default=True, help="Port to bind to.")
@click.option("--workspace", "-w", multiple=True, required=True, help="Workspace file.")
@click.option("--read-only", is_flag=True, help="Refuse to launch runs and to change anything.")
@click.option("--shutdown-pipe", type=int, hidden=True, help="Descriptor that ends the server.")
def serve(
    host: str, port: int, workspace: Sequence[str], read_only: bool, shutdown_pipe: int | None
) -> None:
    """Serve the Dagster UI until interrupted."""
    try:
        settings = load_settings(os.environ)
        allowed = allowed_names(settings.ui.allowed_hosts)
    except NewsPlatformError as error:
        raise click.ClickException(str(error)) from error
    lines = dagster_log_format(settings.logs.format)
    configure_loggers(formatter=lines, log_level="INFO")
    with contextlib.ExitStack() as stack:
        if shutdown_pipe is not None:
            stack.enter_context(interrupt_on_ipc_shutdown_message(shutdown_pipe))
        context = stack.enter_context(_workspace_context(workspace, read_only=read_only))
        _LOG.info("Serving the Dagster UI on http://%s:%s in process %s", host, port, os.getpid())
        uvicorn.run(_app(context, allowed), host=host, port=port, log_level="warning")


@contextlib.contextmanager
def _workspace_context(
    files: Sequence[str], *, read_only: bool
) -> Iterator[WorkspaceProcessContext]:
    """Load the code locations of the files, with the limits that Dagster's own command sets."""
    with DagsterInstance.get() as instance:
        instance.optimize_for_webserver(
            dagster_cli.DEFAULT_DB_STATEMENT_TIMEOUT,
            dagster_cli.DEFAULT_POOL_RECYCLE,
            dagster_cli.DEFAULT_POOL_MAX_OVERFLOW,
        )
        with WorkspaceProcessContext(
            instance,
            version=__version__,
            read_only=read_only,
            workspace_load_target=WorkspaceFileTarget(list(files)),
            code_server_log_level="warning",
        ) as context:
            yield context


def _app(context: WorkspaceProcessContext, allowed: frozenset[str]) -> AllowedHosts:
    app = create_app_from_workspace_process_context(
        context, live_data_poll_rate=_POLL_MILLISECONDS, lifespan=_lifespan
    )
    return AllowedHosts(app, allowed=allowed, also=graphql_refusal)


def graphql_refusal(scope: Message) -> str | None:
    """Return why a GraphQL request is refused: Dagster would run a mutation that an image asks for.

    A GET that asks for HTML gets the playground, whatever its query.
    """
    if scope["type"] != "http" or not scope["path"].rstrip("/").endswith("/graphql"):
        return None
    sent = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    if scope["method"] == "POST":
        is_json = sent.get(b"content-type", "").partition(";")[0].strip() == "application/json"
        return None if is_json else "GraphQL must be sent as Content-Type: application/json"
    if scope["method"] == "GET" and "text/html" in sent.get(b"accept", ""):
        return None
    return "GraphQL must be sent by POST"


@contextlib.asynccontextmanager
async def _lifespan(_app: object) -> AsyncIterator[None]:
    # uvicorn cancels the lifespan on Ctrl-C: https://github.com/encode/uvicorn/issues/1160
    with contextlib.suppress(asyncio.CancelledError):
        yield


if __name__ == "__main__":
    serve()
