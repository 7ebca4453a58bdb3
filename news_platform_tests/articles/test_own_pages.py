"""A floor on pages of our own, in the layouts that real sites use; it may only rise."""

import pytest

from benchmarks.article_pages import harmonic_mean, precision_recall
from news_platform.articles.extract import extract_article
from news_platform_tests.rss.web import SENTENCES

NUMBERED = [
    f"{' '.join(SENTENCES[start:] + SENTENCES[:start])} This was item {start} of the evening."
    for start in range(5)
]
CHINESE = [
    f"市政府第{n}次宣布，新桥将于下月通车，市民对此表示欢迎。记者从会上了解到，工程进展顺利。"
    for n in range(6)
]
MENU = "".join(f'<li><a href="/{n}">Section {n}</a></li>' for n in range(12))
TEASERS = "".join(
    f'<div class="teaser"><a href="/t{n}"><h3>Another story {n}</h3></a>'
    f"<p>What happened in town number {n}, and why nobody was told before.</p></div>"
    for n in range(6)
)
COMMENTS = "".join(
    f'<li class="comment"><b>Reader {n}</b><p>I do not agree at all with item {n}. Somebody has to '
    "say so, and it is a pity that the council never listens to people like us.</p></li>"
    for n in range(15)
)


def paragraphs(texts: list[str], tag: str = "p") -> str:
    return "".join(f"<{tag}>{text}</{tag}>" for text in texts)


LAYOUTS = {
    "divs with classes": f'<div class="post"><h1>Bridge</h1><div class="entry-content">'
    f'{paragraphs(NUMBERED)}</div></div><div class="related">{TEASERS}</div>',
    "table layout": f"<table><tr><td><ul>{MENU}</ul></td><td>{'<br><br>'.join(NUMBERED)}</td>"
    f"<td>{TEASERS}</td></tr></table>",
    "comments below": f'<main><h1>Bridge</h1><div class="text">{paragraphs(NUMBERED)}</div></main>'
    f'<ol id="comments">{COMMENTS}</ol>',
    "chunks": "".join(f'<div class="chunk"><p>{text}</p></div>' for text in NUMBERED),
    "chinese": f'<div class="article"><h1>新桥通车</h1>{paragraphs(CHINESE)}</div>{TEASERS}',
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_text_of_our_own_pages_stays_above_its_floor(layout: str) -> None:
    page = (
        f"<html><head><title>Bridge | Post</title></head><body><nav><ul>{MENU}</ul></nav>"
        f"{LAYOUTS[layout]}<footer>© The Post. All rights reserved.</footer></body></html>"
    )
    wanted = "\n".join(CHINESE if layout == "chinese" else NUMBERED)
    article = extract_article(page, "https://post.example/bridge")
    f1 = harmonic_mean(*precision_recall(article.clean_text, wanted))
    # Teasers in the next cell of a layout table are still taken for text.
    assert f1 >= (0.90 if layout == "table layout" else 0.95)
    assert article.confidence >= 0.6
