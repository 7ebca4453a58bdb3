"""The work of one process that a test kills: build a day, maintain the tables, or export.

python -m news_platform_tests.corpus.kill_target ROOT SCRATCH build|maintain|export NUMBER
"""

import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from news_platform.corpus.export.pipeline import ExportOptions, export_corpus
from news_platform.corpus.export.publish import replacing_folder
from news_platform.corpus.export.selection import ExportSelection
from news_platform.corpus.options import CorpusOptions
from news_platform.corpus.pipeline import build_crawl_day, crawl_dataset
from news_platform.storage.objects.store import open_store
from news_platform_tests.corpus.hostile import QUICK
from news_platform_tests.corpus.pages import DAY

OPTIONS = replace(CorpusOptions(workers=1), target=QUICK)


def main(root: str, scratch: str, work: str) -> None:
    """Do the work again and again until the process is killed."""
    store = open_store(root)
    # Killed processes leave their scratch folders: they must not be those of the system.
    options = replace(OPTIONS, scratch=scratch)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        if work == "build":
            build_crawl_day(store, DAY, options=options)
        elif work == "maintain":
            crawl_dataset(store).delete("domain = 'nobody.example'")
            crawl_dataset(store).maintain(timedelta(0))
        else:
            with replacing_folder(Path(scratch) / "export") as folder:
                chosen = ExportSelection(days=(DAY,))
                export_corpus(store, folder, chosen, ExportOptions(scratch=scratch))


if __name__ == "__main__":
    main(*sys.argv[1:])
