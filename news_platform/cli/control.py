"""`news-platform pause` and `resume`: one switch for all sensors of a root."""

import click

from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.storage.commit import root as roots


@click.command()
@root_option
@json_option
def pause(root: str, as_json: bool) -> None:
    """Pause all sensors: nothing new is requested until `resume`; runs under way go on."""
    store = resources_for(root).data_root.store
    roots.pause(store)
    emit({"root": store.url, "paused": True}, as_json=as_json, text=f"paused: {store.url}")


@click.command()
@root_option
@json_option
def resume(root: str, as_json: bool) -> None:
    """Let all sensors go on."""
    store = resources_for(root).data_root.store
    roots.resume(store)
    emit({"root": store.url, "paused": False}, as_json=as_json, text=f"resumed: {store.url}")
