"""`news-platform metrics`: serve the metrics of a root to Prometheus."""

import click

from news_platform.cli.options import refuse_taken_port, resources_for, root_option

# The port that Prometheus's list of exporters leaves to OpenTelemetry and the like.
_PORT = 9464


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=_PORT,
    type=click.IntRange(1, 65_535),
    show_default=True,
    help="Port to listen on.",
)
@root_option
def metrics(host: str, port: int, root: str) -> None:
    """Serve /metrics for Prometheus until interrupted.

    There is no password: on an address other than 127.0.0.1, a proxy or firewall must admit
    Prometheus alone, and its name for this machine must be in NEWS_PLATFORM_ALLOWED_HOSTS.
    """
    if not host:  # it would mean every address of this machine
        raise click.BadParameter("it is empty: expected an address", param_hint="--host")
    resources = resources_for(root)
    refuse_taken_port(host, port, cure="choose another with --port")
    # Imported here: a wrong root or port is reported before Dagster is loaded.
    import uvicorn

    from news_platform.operations.metrics import PATH, metrics_app

    app = metrics_app(resources)
    click.echo(f"http://{host}:{port}{PATH} over {resources.data_root.store.url}", err=True)
    uvicorn.run(app, host=host, port=port, log_level="warning")
