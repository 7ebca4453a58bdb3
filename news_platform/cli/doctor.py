"""`news-platform doctor`: say what is wrong with an installation, and what to do."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from news_platform.cli.options import emit, json_option, root_option, settings_for
from news_platform.errors import NewsPlatformError
from news_platform.operations.checks import Diagnosis, Health
from news_platform.operations.doctor import examine
from news_platform.resources import open_resources
from news_platform.storage.commit.root import RootAccess


@click.command()
@root_option
@json_option
def doctor(root: str, as_json: bool) -> None:
    """Check everything that a root needs, and say what to do.

    The exit code is 1 if something is wrong. No secret is shown.
    """
    settings = settings_for(root)
    found = list(examine(open_resources(settings, access=RootAccess.READ)))
    counts = Counter(one.state for one in found)
    document = {
        "root": root,
        "is_healthy": not counts[Health.WRONG],
        "findings": [asdict(one) for one in found],
    }
    emit(document, as_json=as_json, text="\n".join(_lines(found)))
    bad = [one for one in found if one.state is Health.WRONG]
    if bad:
        raise NewsPlatformError(f"{len(bad)} of {len(found)} are wrong, first: {bad[0].check}")


def _lines(found: Sequence[Diagnosis]) -> Iterator[str]:
    for one in found:
        yield f"{one.state:<8} {one.check:<17} {one.meaning}"
        if one.action:
            yield f"{'':<26} -> {one.action}"
