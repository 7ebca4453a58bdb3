"""Titles and texts that try to break a page, its layout or its reader's trust, or Markdown."""

_SCRIPT = "<script>document.title='owned'; console.error('owned')</script>"

HOSTILE = (
    _SCRIPT,
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "<img src=x onerror=\"console.error('owned')\">",
    "<svg/onload=console.error('owned')>",
    '"><svg onload=console.error(1)>',
    "' onmouseover='console.error(1)' x='",
    "</title><script>console.error('owned')</script>",
    "</textarea></style></script><h1>owned</h1>",
    "<!--<script>console.error('owned')//-->",
    "<iframe src=javascript:console.error(1)></iframe>",
    '<a href="javascript:console.error(1)">click</a>',
    "<base href=//evil.example/>",
    '<meta http-equiv=refresh content="0;url=//evil.example">',
    "<form action=//evil.example><button>Search</button></form>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>body{display:none}</style>",
    "{{ 7 * 7 }} {% for x in y %} ${7*7} #{7*7}",
    "&lt;script&gt;console.error(1)&lt;/script&gt;",
    "&#x3c;script&#x3e;console.error(1)&#x3c;/script&#x3e;",
    "\u202eexe.gnp\u202c says the mayor\u202e",
    "\u2066\u2067\u2068 isolates that never end",
    "مرحبا \u202d english \u202e עברית",
    "\u200b\u200c\u200d\u2060\ufeff",
    "vi\u200bsi\u00adble words with zero\u200bwidth inside",
    "Z̸̢̧͇̗̝̱̦̺͎̥̩̎̇̏̃̈́̒̕ͅa̶̡̛͚̺͕͙̖̬͛̀̐̿̿̈́l̷̨̛̟̰̖̱̜̈́̍̈́̋g̸̢̛̛̟̥̗̺̓̈́̀̽̀̚ơ̷̧̡̱̱̺̬͆͐̅̆̚͝",
    "a" * 200_000,
    "huge words " * 60_000,
    "&" * 120_000,
    "line\r\nbreaks\tand\x0bcontrols\x00\x1b[31mred",
    "🏴\U000e0067\U000e0062 \U000e0001tags \ud83d lone half".encode(errors="replace").decode(),
)
assert len(HOSTILE) == 30

# What Dagster's UI would render as Markdown: {} is where the browser is to go.
_FORMS = (
    "![]({})",
    '![x]({} "title")',
    "![x][r] [r]: {}",
    "![](<{}>)",
    "[![]({})](x)",
    "[click]({})",
    "<{}>",
    "see {} now",
    "<img src={}>",
    '<img src="x" onerror="fetch(\'{}\')">',
    "<svg><image href={} /></svg>",
    "<iframe src={}></iframe>",
    "<link rel=stylesheet href={}>",
    "<style>@import '{}'</style>",
    "a|![]({})|b",
    "\\|![]({})",
    "`![]({})",
    "\\`![]({})`` `",
    "line\n\n![]({})\n```\n![]({})",
    "&#33;[]({}) &lt;img src={}&gt;",
)
_TARGETS = (
    "/graphql?query=mutation{setAutoMaterializePaused(paused:true)}",
    "http://127.0.0.1:9/leak.png",
    "//www.evil.example/leak.png",
)
MARKDOWN = tuple(form.replace("{}", target) for form in _FORMS for target in _TARGETS)
