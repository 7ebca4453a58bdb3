"""Headers that ask a client to wait, in spellings that ended the poll of every feed before."""

HOSTILE_HEADERS = [
    {"retry-after": "²"},
    {"retry-after": "9" * 5_000},
    {"retry-after": "Mon, 03 Nov 2025 12:00:00 +99999999999999"},
    {"retry-after": "Mon, 03 Nov 99999999999 12:00:00 GMT"},
    {"retry-after": "Mon, " + "9" * 5_000 + " Nov 2025 12:00:00"},
    {"retry-after": "-1"},
    {"retry-after": "\udcff\udcb2"},
    {"cache-control": "max-age=" + "9" * 5_000},
    {"cache-control": "max-age=²"},
]
