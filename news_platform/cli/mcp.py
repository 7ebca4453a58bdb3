"""`news-platform mcp`: a server for language models, over standard input and output or HTTP."""

import click

from news_platform.cli.options import refuse_taken_port, resources_for, root_option


@click.command()
@root_option
def mcp(root: str) -> None:
    """Answer search, article, domain, explain, policy and sql over MCP until the input ends.

    With NEWS_PLATFORM_MCP_ADDRESS it serves HTTP at /mcp instead of standard input and output.
    """
    # Loading the library takes most of a second, which only this command pays.
    from news_platform.server.app import run_app
    from news_platform.server.app_state import AppState
    from news_platform.server.guards import guarded
    from news_platform.server.mcp import create_mcp
    from news_platform.server.options import ServerOptions, parse_address, server_options

    resources = resources_for(root)
    address = resources.settings.server.mcp_address
    if address is None:
        create_mcp(AppState(resources, ServerOptions())).run("stdio")
        return
    host, port = parse_address(address)
    options = server_options(resources.settings, host=host, port=port)
    refuse_taken_port(host, port, cure="change NEWS_PLATFORM_MCP_ADDRESS")
    server = create_mcp(AppState(resources, options))
    # Our own guards check hosts, token and rate, as for the pages.
    app = server.streamable_http_app(stateless_http=True, json_response=True, host=host)
    click.echo(f"http://{address}/mcp over {resources.data_root.store.url}", err=True)
    run_app(guarded(app, options, methods=("GET", "POST", "DELETE")), options)
