"""`news-platform serve`: pages and a JSON API over a root."""

import click

from news_platform.cli.options import count_type, refuse_taken_port, resources_for, root_option
from news_platform.operations.metrics import metrics_route
from news_platform.server.app import create_app, run_app
from news_platform.server.options import server_options


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind to.")
@click.option(
    "--port",
    default=8000,
    type=click.IntRange(1, 65_535),
    show_default=True,
    help="Port to bind to.",
)
@click.option(
    "--shutdown-pipe", type=count_type(), hidden=True, help="Descriptor that ends the server."
)
@root_option
def serve(host: str, port: int, shutdown_pipe: int | None, root: str) -> None:
    """Serve search, articles, domains, AI policies and the status until interrupted.

    Another address than 127.0.0.1 needs NEWS_PLATFORM_SERVER_TOKEN.
    """
    resources = resources_for(root)
    options = server_options(resources.settings, host=host, port=port)
    refuse_taken_port(host, port, cure="choose another with --port")
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"http://{shown}:{port} over {resources.data_root.store.url}", err=True)
    app = create_app(resources, options, more_routes=[metrics_route(resources)], warm=True)
    run_app(app, options, shutdown_pipe=shutdown_pipe)
