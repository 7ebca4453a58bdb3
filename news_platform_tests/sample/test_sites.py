"""Feeds, robots rules and sitemaps: what the survey and the feed reader will meet."""

import json
import zlib
from calendar import timegm
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

import feedparser
import pytest
from lxml import etree

from news_platform.sample.newsroom import WORLD_NOW
from news_platform.sample.outlets import OUTLETS, Outlet, SiteResponse
from news_platform.sample.sites import Site

Sites = Mapping[str, Site]
WEEK = timedelta(days=7)
XML_OUTLETS = [outlet for outlet in OUTLETS if outlet.feed.kind != "json"]


def feed_of(sites: Sites, outlet: Outlet) -> SiteResponse:
    return sites[outlet.host][outlet.feed.path]


def follow(sites: Sites, url: str, *, hops: int = 3) -> SiteResponse:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    site = sites[str(parts.hostname)]
    found = site.get(target) or site[parts.path]
    if not found.location or hops == 0:
        return found
    return follow(sites, urljoin(url, found.location), hops=hops - 1)


# One of each kind of feed.
@pytest.mark.parametrize(
    "outlet",
    {outlet.feed.kind: outlet for outlet in XML_OUTLETS}.values(),
    ids=lambda outlet: outlet.feed.kind,
)
def test_feedparser_reads_an_xml_feed_without_complaint(sites: Sites, outlet: Outlet) -> None:
    feed = feed_of(sites, outlet)
    parsed = feedparser.parse(feed.body, response_headers={"content-type": feed.content_type})
    assert not parsed.bozo, parsed.get("bozo_exception")
    assert parsed.version == {"rss": "rss20", "atom": "atom10", "rdf": "rss10"}[outlet.feed.kind]
    assert parsed.feed.title == outlet.name
    assert len(parsed.entries) == outlet.feed.entries
    for entry in parsed.entries:
        stated = entry.get("published_parsed") or entry.updated_parsed
        at = datetime.fromtimestamp(timegm(stated), tz=UTC)
        assert WORLD_NOW - WEEK < at < WORLD_NOW
        assert entry.title
        assert entry.summary


def test_a_json_feed_follows_its_format(sites: Sites) -> None:
    outlet = next(outlet for outlet in OUTLETS if outlet.feed.kind == "json")
    document = json.loads(feed_of(sites, outlet).body)
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    assert document["language"] == outlet.language
    assert len(document["items"]) == outlet.feed.entries
    assert all(item["id"] and item["url"] and item["title"] for item in document["items"])


def test_every_announced_link_leads_to_a_page_but_for_the_withdrawn_one(sites: Sites) -> None:
    outcomes = []
    for outlet in XML_OUTLETS:
        for entry in feedparser.parse(feed_of(sites, outlet).body).entries:
            outcomes.append(follow(sites, entry.link).status)
    assert outcomes.count(410) == 1
    assert set(outcomes) == {200, 410}


def test_the_troubled_feeds_are_as_the_opml_promises(sites: Sites) -> None:
    post = sites["www.calderpost.example"]
    assert (post["/feed"].status, post["/feed"].location) == (
        301,
        "https://www.calderpost.example/feeds/news.xml",
    )
    stale = feedparser.parse(post["/feeds/archive.xml"].body).entries
    assert all(WORLD_NOW - parsedate_to_datetime(entry.published) > 5 * WEEK for entry in stale)
    assert sites["www.harbourhill.co.example"]["/old-feed.xml"].status == 410
    assert "/comments.xml" not in sites["news.northmoor.example"]


def test_the_opml_lists_good_and_troubled_feeds(world: Mapping[str, bytes], sites: Sites) -> None:
    outlines = etree.fromstring(world["feeds.opml"]).findall(".//outline")
    urls = [outline.get("xmlUrl") for outline in outlines]
    assert len(urls) == len(set(urls)) == 10
    assert all(urlsplit(str(url)).hostname in sites for url in urls)


def inflated(resource: SiteResponse) -> bytes:
    body = resource.body
    return zlib.decompress(body, 31) if body.startswith(b"\x1f\x8b") else body


def test_sitemaps_of_every_kind_parse_and_name_pages_that_exist(sites: Sites) -> None:
    roots = set()
    for host, site in sites.items():
        for target, resource in site.items():
            if "sitemap" not in target or resource.status != 200:
                continue
            if target.endswith(".txt"):
                locations = resource.body.decode().split()
                roots.add("txt")
            else:
                tree = etree.fromstring(inflated(resource))
                roots.add(etree.QName(tree).localname)
                locations = [str(found.text) for found in tree.iter("{*}loc")]
            assert locations
            assert all(urlsplit(url).hostname == host for url in locations)
            assert all(follow(sites, url).status in (200, 404, 410) for url in locations)
    assert roots == {"txt", "urlset", "sitemapindex"}
