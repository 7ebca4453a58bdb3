"""Publish the files of one WARC: make the stored ones equal to those written, the marker last."""

from dataclasses import replace
from datetime import date
from functools import partial
from urllib.parse import quote

from news_platform.ccnews.writer import WrittenWarc
from news_platform.datasets.captures import captures_path, feed_candidates_path
from news_platform.datasets.collected import Collected, collected_path, dump_collected
from news_platform.datasets.dropped_responses import dropped_responses_path
from news_platform.datasets.raw_news import raw_news_day_prefix, raw_news_path
from news_platform.storage.commit.collected import (
    delete_other_markers,
    find_collected,
    retract_collected,
)
from news_platform.storage.commit.publish import publish
from news_platform.storage.objects.store import ObjectStore


def publish_warc(root: ObjectStore, marker: Collected, written: WrittenWarc) -> None:
    """Make the stored files of the WARC equal to those written, then write its marker.

    A marker that would say the same is kept, so that nothing downstream is built again.
    """
    day, warc_name = marker.day, marker.warc
    files = {
        raw_news_path(day, language, filename=warc_name): part.path
        for language, part in written.news.items()
    }
    if written.captures:
        files[captures_path(day, warc_name)] = written.captures.path
    if written.feeds:
        files[feed_candidates_path(day, warc_name)] = written.feeds.path
    if written.dropped:
        files[dropped_responses_path(day, warc_name)] = written.dropped.path
    old = find_collected(root, day=day, warc=warc_name)
    if old and replace(old, attempt=marker.attempt, collected_at=marker.collected_at) == marker:
        marker = old
    # Another version or other options may have written other languages: those files are strays.
    publish(
        root,
        files,
        marker=collected_path(day, warc_name, marker.fingerprint),
        marker_body=dump_collected(marker),
        replaces=_stored_folders(root, day, warc_name),
        retract=partial(retract_collected, root, day=day, warc=warc_name),
    )
    delete_other_markers(root, marker)


def _stored_folders(root: ObjectStore, day: date, warc_name: str) -> list[str]:
    """Return the folders that may hold files of this WARC from an earlier attempt."""
    own = f"/filename={quote(warc_name, safe='')}"
    found = {info.path.rpartition("/")[0] for info in root.list(raw_news_day_prefix(day))}
    side = [
        path_of(day, warc_name)
        for path_of in (captures_path, feed_candidates_path, dropped_responses_path)
    ]
    return [
        *sorted(folder for folder in found if folder.endswith(own)),
        *(path.rpartition("/")[0] for path in side),
    ]
