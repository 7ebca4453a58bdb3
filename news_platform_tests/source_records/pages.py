"""Small pages for the tests: the seed's examples, and an institution's page with everything."""

from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import SegmentedPage, segment
from news_platform.source_records.snapshots import SourcePage

URL = "https://u1.edu/eng/depts"

DEPARTMENTS = """
<h2>Departments</h2>
<ul>
  <li>Computer Science</li>
  <li>Electrical & Computer Engineering</li>
  <li>Admissions</li>
</ul>
<footer>© 2025 University</footer>
"""

PROSE = (
    "The faculty brings together nine departments in four buildings along the river, and it "
    "teaches more than four thousand students every year in all of the sciences that engineers "
    "need for their work in the harbour and in the town."
)

FULL_PAGE = f"""<!doctype html><html lang="en"><head><title>Faculty</title></head><body>
<div class="cookie-bar"><p>We would like to set some small files on your computer.</p></div>
<header><a href="/">Northmoor University of the Coast</a></header>
<nav><ul><li><a href="/a">Study with us</a></li><li><a href="/b">Our research</a></li></ul></nav>
<div class="breadcrumbs"><a href="/">Home page</a> › <a href="/f">All faculties</a></div>
<main>
<h1>Faculty of Engineering</h1>
<p>{PROSE}</p>
<h2>Contact hours</h2>
<table><tr><th>Office</th><th>Opening hours</th></tr>
<tr><td>Dean of Engineering</td><td>Monday to Friday</td></tr></table>
<dl><dt>Founded in the year</dt><dd>1921, by royal charter</dd></dl>
<p><a href="/apply">Apply now</a></p>
<div class="share-buttons"><a href="#">Share this page with friends</a></div>
</main>
<aside><h3>Upcoming events</h3><p>An open day for prospective students.</p></aside>
<form><label>Your e-mail address</label><input><button>Send it to us</button></form>
<footer><p>© 2025 Northmoor University, all rights reserved</p></footer>
</body></html>"""


def cut(html: str | bytes, options: SegmentOptions | None = None) -> SegmentedPage:
    """Segment a page."""
    return segment(SourcePage(html, url=URL, institution="u1"), options or SegmentOptions())


def texts(html: str | bytes, options: SegmentOptions | None = None) -> list[str]:
    """Return the kept texts of a page."""
    return [record.text for record in cut(html, options).records]


def fates(html: str | bytes, options: SegmentOptions | None = None) -> dict[str, str | None]:
    """Return for every block of a page why it was dropped, None if it is kept."""
    return {decision.block.text: decision.reason for decision in cut(html, options).decisions}
