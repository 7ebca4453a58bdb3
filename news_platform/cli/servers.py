"""`news-platform dev`, `serve`, `mcp` and `metrics`: servers that run until interrupted.

Each imports its libraries after the root and the port are checked: they take seconds to load.
"""

import os
import sys
from pathlib import Path

import click

from news_platform.cli.command import command, count_type, port_option, refuse_taken_port
from news_platform.composition.home import make_home
from news_platform.composition.pausing import pause_text
from news_platform.resources import Resources, open_resources
from news_platform.setting_sections.platform import HOME_VARIABLE, ROOT_VARIABLE
from news_platform.settings import Settings, server_addresses
from news_platform.web.allowed_hosts import allowed_names

HOST = "127.0.0.1"
# The port that the list of Prometheus exporters reserves for OpenTelemetry and similar ones.
_METRICS_PORT = 9464
# Started by its name: this package does not import Dagster.
_SERVICES = "news_platform.defs.services.dev"
# The location name of all our workspace files: sensors store their state under it.
_WORKSPACE = """load_from:
  - python_module:
      module_name: news_platform.definitions
      location_name: news_platform
"""

_host_option = click.option("--host", default=HOST, show_default=True, help="Address to listen on.")


@command(access=None, has_json=False)
@port_option("--port", 3000, "Port of the UI on 127.0.0.1.")
@port_option("--server-port", 8000, "Port of the explorer on 127.0.0.1.")
def dev(settings: Settings, port: int, server_port: int) -> None:
    """Run the Dagster UI, its daemon and the explorer on 127.0.0.1.

    The addresses are printed when all of them answer. Log lines go to the file dev.log in
    DAGSTER_HOME, which is the folder .dagster of a local root unless it is set.
    """
    home = make_home(settings)
    allowed_names(settings.ui.allowed_hosts)  # a wrong one is told before anything starts
    refuse_taken_port(HOST, port, cure="choose another port with `make dev PORT=3001`")
    cure = "choose another port with `make dev SERVER_PORT=8001`"
    refuse_taken_port(HOST, server_port, cure=cure)
    store = open_resources(settings).data_root.store
    log = home / "dev.log"
    addresses = [
        *filter(None, [pause_text(store, settings)]),
        f"Dagster UI  http://{HOST}:{port}",
        f"explorer    http://{HOST}:{server_port}",
    ]
    click.echo(f"starting on {store.url}; log lines go to {log}", err=True)
    absolute = str(store.local_folder) if store.local_folder else settings.root
    workspace = home / "workspace.yaml"
    workspace.write_text(_WORKSPACE, encoding="utf-8")
    services = ["-m", _SERVICES, "-h", HOST, "-p", str(port), "-w", str(workspace)]
    services += ["--server-port", str(server_port), "--addresses", "\n".join(addresses)]
    services += ["--terminal", str(_log_to(log))]
    quiet = {
        # Dagster warns about its own beta features, which users of the graph cannot change.
        "PYTHONWARNINGS": "ignore",
        "DAGSTER_IS_DEV_CLI": "1",
        # The two servers link to each other, unless the environment gives them other addresses.
        **server_addresses(f"http://{HOST}:{port}", f"http://{HOST}:{server_port}"),
        **os.environ,
    }
    own = {ROOT_VARIABLE: absolute, HOME_VARIABLE: str(home)}
    os.execve(sys.executable, [sys.executable, *services], {**quiet, **own})


def _log_to(file: Path) -> int:
    """Send all output of this process to a new file; return a descriptor of the old stderr."""
    terminal = os.dup(2)
    os.set_inheritable(terminal, True)
    with file.open("wb") as log:
        for output in (1, 2):
            os.dup2(log.fileno(), output)
    return terminal


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@command(has_json=False)
@_host_option
@port_option("--port", 8000, "Port to listen on.")
@click.option(
    "--shutdown-pipe", type=count_type(), hidden=True, help="Descriptor that ends the server."
)
def serve(resources: Resources, host: str, port: int, shutdown_pipe: int | None) -> None:
    """Serve the explorer and its JSON API.

    An address other than 127.0.0.1 needs NEWS_PLATFORM_SERVER_TOKEN.
    """
    from news_platform.server.guards import server_options

    options = server_options(resources.settings, host=host, port=port)
    refuse_taken_port(host, port, cure="choose another with --port")
    from news_platform.operations.metrics import metrics_route
    from news_platform.server.app import create_app, run_app

    click.echo(f"http://{_shown(host)}:{port} over {resources.data_root.store.url}", err=True)
    app = create_app(resources, options, more_routes=[metrics_route(resources)], warm=True)
    run_app(app, options, shutdown_pipe=shutdown_pipe)


@command(has_json=False)
@_host_option
@port_option("--port", None, "Port of an HTTP server at /mcp; without it: standard input.")
def mcp(resources: Resources, host: str, port: int | None) -> None:
    """Run an MCP server.

    It offers search, article, domain, explain, policy and sql over standard input and output until
    the input ends, or by HTTP.
    """
    from news_platform.server.app import run_app
    from news_platform.server.app_state import AppState
    from news_platform.server.guards import ServerOptions, guarded, server_options
    from news_platform.server.mcp import create_mcp, run_stdio

    if port is None:
        run_stdio(create_mcp(AppState(resources, ServerOptions())))
        return
    options = server_options(resources.settings, host=host, port=port)
    refuse_taken_port(host, port, cure="choose another with --port")
    server = create_mcp(AppState(resources, options))
    # Our own guards check hosts, token and rate, as for the pages.
    app = server.streamable_http_app(stateless_http=True, json_response=True, host=host)
    click.echo(f"http://{_shown(host)}:{port}/mcp over {resources.data_root.store.url}", err=True)
    run_app(guarded(app, options, methods=("POST",)), options)


@command(has_json=False)
@_host_option
@port_option("--port", _METRICS_PORT, "Port to listen on.")
def metrics(resources: Resources, host: str, port: int) -> None:
    """Serve the metrics of a root to Prometheus.

    There is no password: on an address other than 127.0.0.1, a proxy or firewall must admit
    Prometheus alone, and its name for this machine must be in NEWS_PLATFORM_ALLOWED_HOSTS.
    """
    if not host:  # it would mean every address of this machine
        raise click.BadParameter("it is empty: expected an address", param_hint="--host")
    refuse_taken_port(host, port, cure="choose another with --port")
    import uvicorn

    from news_platform.operations.metrics import PATH, metrics_app

    app = metrics_app(resources)
    click.echo(f"http://{host}:{port}{PATH} over {resources.data_root.store.url}", err=True)
    uvicorn.run(app, host=host, port=port, log_level="warning")
