"""Pairs of addresses as real publishers write them: 200 of one article or of two."""

from collections.abc import Iterator

# Host, path, and what feeds and share buttons append.
_TRACKED = """
www.theguardian.com/world/2024/mar/02/ceasefire-talks CMP=rss CMP=share_btn_tw
www.nytimes.com/2024/01/05/us/politics/shutdown.html partner=rss&emc=rss smid=tw-share
www.wsj.com/articles/fed-holds-rates-11698865201 mod=rss_markets_main mod=hp_lead_pos1&reflink=share
www.washingtonpost.com/politics/2024/02/11/aid-bill/ itid=hp-top-table-main itid=sr_1&tid=ss_tw
www.telegraph.co.uk/news/2024/01/20/storm-isha/ WT.mc_id=tmg_share_tw WT.mc_id=e_DM1
www.dw.com/en/germany-budget/a-67440002 maca=en-rss-en-all-1573-rdf maca=de-rss-de-top-1016-rdf
www.cbc.ca/news/canada/toronto/subway-1.7012345 cmp=rss cmp=newsletter_top
www.reuters.com/world/europe/vote-2024-01-09/ taid=65a1b2c3 feedType=RSS&feedName=worldNews
www.economist.com/leaders/2024/02/01/chips fsrc=rss fsrc=core-app-economist
www.npr.org/2024/01/12/1224500000/taiwan-election ft=nprml&f=1004 sc=tw
edition.cnn.com/2024/02/02/europe/farmers/index.html iid=cnn-mobile utm_source=fb
www.bloomberg.com/news/articles/2024-01-03/oil srnd=premium sref=abc12
www.spiegel.de/politik/deutschland/haushalt-a-1234.html sara_ref=re-xx-cp-sh sara_ecid=soci_upd
www.lemonde.fr/politique/article/2024/01/09/attal_6209_823448.html lmd_medium=al utm_medium=rss
www.lefigaro.fr/politique/remaniement-20240109 een=abc&seen=2 fbclid=IwAR1
www.politico.com/news/2024/01/10/x-00134 nname=playbook&nid=1&nrid=2 lo=ap_a1
www.forbes.com/sites/a/2024/01/02/tech/ sh=4b1c2d3e ss=ai
www.bbc.co.uk/news/uk-68000001 at_medium=RSS&at_campaign=KARANGA ns_mchannel=social
www.ft.com/content/0a1b2c3d-1111-2222-3333-444455556666 ftcamp=rss utm_id=2
www.aljazeera.com/news/2024/1/9/strike traffic_source=rss utm_source=feed
www.asahi.com/articles/ASS1A2B3CD.html iref=comtop_7_01 ref=rss
www.bbc.com/news/world-europe-68000001 intlink_from_url=https://www.bbc.com/news xtor=AL-72
www.cnbc.com/2024/01/09/fed.html __source=sharebar __source=twitter
www.nytimes.com/2011/09/04/magazine/syrias-sons.html _r=1&hp src=tw&ref=magazine
www.theguardian.com/books/2012/oct/29/prize INTCMP=SRCH gusrc=rss&feed=books
www.vox.com/2024/1/9/24000001/court itm_source=navigation&itm_medium=site itm_campaign=rel
www.wired.com/story/chips-war/ mbid=social_twitter bxid=5bd&cndid=1&utm_brand=wired
www.repubblica.it/esteri/2024/01/09/news/voto-421 ref=RHLF-BG-P1-S1-T1 rss
timesofindia.indiatimes.com/india/x/articleshow/106700001.cms from=mdr utm_source=contentofinterest
"""
# Two addresses of one site that choose two articles.
_DIFFERENT = """
www.abc-noticias.mx/nota.php?id=10012 www.abc-noticias.mx/nota.php?id=10013
www.haber7.com/detay?haber=1 www.haber7.com/detay?haber=2
www.example-daily.in/story?storyId=55 www.example-daily.in/story?storyId=56
www.npr.org/templates/story/story.php?storyId=1 www.npr.org/templates/story/story.php?storyId=2
www.kurier.at/artikel?p=1 www.kurier.at/artikel?p=2
www.lokalzeit.de/index.php?article=7 www.lokalzeit.de/index.php?article=8
news.example.jp/view?aid=20240101a news.example.jp/view?aid=20240101b
www.gazeta-x.pl/a,1.html www.gazeta-x.pl/a,2.html
www.dailystar.example/x?f=1001 www.dailystar.example/x?f=1002
www.tribune.example/read?mod=1 www.tribune.example/read?mod=2
www.voice.example/a?cmp=3 www.voice.example/a?cmp=4
www.herald.example/a?partner=1 www.herald.example/a?partner=2
www.post.example/n?sc=1 www.post.example/n?sc=2
www.echo.example/#!/story/1 www.echo.example/#!/story/2
www.times.example/a?from=1 www.times.example/a?from=2
www.mail.example/news?source=a www.mail.example/news?source=b
www.sun.example/live/1 www.sun.example/live/2
www.globe.example/A www.globe.example/a
www.wire.example/s/1 www.wire.example/s/1/
www.star.example/a?page=1&id=9 www.star.example/a?page=1&id=8
www.ledger.example/2024/01/09/fire-1 www.ledger.example/2024/01/09/fire-2
"""
_SESSIONS = (";jsessionid=8A1F", ";jsessionid=77C0.node2", "?PHPSESSID=ab12", "?jsessionid=1")


def same_article() -> Iterator[tuple[str, str]]:
    """Yield pairs of addresses of one article, with trackers and sessions."""
    for line in _TRACKED.strip().splitlines():
        address, *queries = line.split()
        plain = f"https://{address}"
        for query in queries:
            yield plain, f"{plain}?{query}"
        yield f"{plain}?{queries[0]}", f"{plain}?{queries[1]}&utm_campaign=x"
        yield from ((plain, f"{plain}{session}") for session in _SESSIONS)


def different_articles() -> Iterator[tuple[str, str]]:
    """Yield pairs of addresses of two articles, also with the trackers of other publishers."""
    for line in _DIFFERENT.strip().splitlines():
        left, right = (f"https://{address}" for address in line.split())
        yield left, right
        for tail in ("utm_source=rss", "fbclid=1"):
            if "#" not in left:
                mark = "&" if "?" in left else "?"
                yield f"{left}{mark}{tail}", f"{right}{mark}{tail}"
