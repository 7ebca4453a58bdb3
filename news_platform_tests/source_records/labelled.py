"""A small labelled set: fictional pages of six kinds, with the text a reader would want.

Every page is written the way a common kind of site is built, good and bad; `content` is what must
come out, in order, and `furniture` what must not.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Labelled:
    """One page with the texts that are content and those that are not."""

    name: str
    html: str
    content: tuple[str, ...]
    furniture: tuple[str, ...]


_ABOUT = (
    "The Institute of Tides was founded by three harbour pilots who were tired of guessing, and it "
    "has measured the water at the same pier every hour since then, war and holidays included."
)
_GRANTS = (
    "Small grants pay for boat days, sensors and student helpers. A panel of five reads every "
    "proposal twice, once for the question it asks and once for the safety of the crew."
)
_COURSE = (
    "In the first year students learn to read charts, to splice and to listen. In the second they "
    "take a small ship round the islands and write a report that somebody else can sail by."
)

PAGES = (
    Labelled(
        "semantic page with landmarks",
        f"""<html lang="en"><body><a class="skip-link" href="#m">Skip to main content</a>
        <header><p>Institute of Tides</p></header>
        <nav><ul><li><a>Research groups</a></li><li><a>Public lectures</a></li></ul></nav>
        <main id="m"><h1>About the institute</h1><p>{_ABOUT}</p>
        <h2>Groups</h2><ul><li>Storm Surge Forecasting</li><li>Salt Marsh Ecology</li></ul></main>
        <footer><p>Pier Road 4, Port Calder</p><p>© 2025 Institute of Tides</p></footer>
        </body></html>""",
        (_ABOUT, "Storm Surge Forecasting", "Salt Marsh Ecology"),
        ("Skip to main content", "Research groups", "Public lectures", "Pier Road 4"),
    ),
    Labelled(
        "divs with telling class names",
        f"""<body><div id="top-menu"><a>Grants and prizes</a><a>People directory</a></div>
        <div class="pageBody"><div class="breadcrumb"><a>Home</a> / <a>Grants and prizes</a></div>
        <h1>Small grants</h1><p>{_GRANTS}</p><p><a>Apply for a grant</a></p>
        <div class="social-share"><a>Share on the village board</a></div></div>
        <div class="sidebar"><h3>Latest news of ours</h3><p>A seal has visited the pier.</p></div>
        <div class="site-footer">All rights reserved by the harbour office</div></body>""",
        (_GRANTS,),
        (
            "People directory",
            "Apply for a grant",
            "village board",
            "A seal has visited",
            "reserved",
        ),
    ),
    Labelled(
        "layout by tables",
        f"""<table><tr><td><a>Courses</a><br><a>Lodgings</a></td><td><h1>Seamanship</h1>
        <p>{_COURSE}</p><table><tr><th>Term</th><th>Subject</th></tr>
        <tr><td>Autumn</td><td>Charts and tides</td></tr><tr><td>Spring</td><td>Engines</td></tr>
        </table></td></tr></table><p>Last updated in October</p>""",
        (_COURSE, "Autumn | Charts and tides", "Spring | Engines"),
        ("Lodgings", "Last updated"),
    ),
    Labelled(
        "cards of people",
        f"""<main><h1>People of the institute</h1><p>{_ABOUT}</p>
        <div class="card"><h3>Dr Ottilie Farrant</h3><p>Head of storm research</p>
        <a class="btn">Read more</a></div>
        <div class="card"><h3>Bram Sollis</h3><p>Keeper of the tide gauge</p>
        <a class="btn">Read more</a></div></main>""",
        (_ABOUT, "Head of storm research", "Keeper of the tide gauge"),
        ("Read more",),
    ),
    Labelled(
        "accordion of questions",
        f"""<main><h1>Questions</h1><h2><button>Who may apply for a grant?</button></h2>
        <div hidden><p>{_GRANTS}</p></div><h2><button>What is taught?</button></h2>
        <div hidden><p>{_COURSE}</p></div></main>
        <div role="dialog"><p>We use cookies here.</p></div>
        <form><label>Ask your own question</label><button>Send it off</button></form>""",
        (_GRANTS, _COURSE),
        ("We use cookies", "Ask your own question", "Send it off"),
    ),
    Labelled(
        "two languages and a repetition",
        f"""<body><div class="content"><h2>In English</h2><p>{_ABOUT}</p><ul>
        <li>Storm Surge Forecasting</li></ul><h2>Auf Deutsch</h2><p>Das Institut wurde von drei
        Lotsen gegründet, die nicht länger raten wollten, und misst seitdem jede Stunde das Wasser
        am selben Steg, auch im Krieg und an allen Feiertagen.</p></div>
        <div><h2>In short</h2><ul><li>Storm Surge Forecasting</li></ul></div></body>""",
        (_ABOUT, "Storm Surge Forecasting"),
        ("Lotsen gegründet",),
    ),
)
