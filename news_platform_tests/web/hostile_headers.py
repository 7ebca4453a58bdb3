"""Headers that ask a client to wait, in spellings that ended the poll of every feed before."""

import pytest

HOSTILE_HEADERS = [
    pytest.param({"retry-after": "²"}, id="superscript digit"),
    pytest.param({"retry-after": "9" * 5_000}, id="5,000 digits"),
    pytest.param({"retry-after": "Mon, 03 Nov 2025 12:00:00 +99999999999999"}, id="huge offset"),
    pytest.param({"retry-after": "Mon, 03 Nov 99999999999 12:00:00 GMT"}, id="huge year"),
    pytest.param({"retry-after": "Mon, " + "9" * 5_000 + " Nov 2025 12:00:00"}, id="huge day"),
    pytest.param({"retry-after": "-1"}, id="negative"),
    pytest.param({"retry-after": "\udcff\udcb2"}, id="bytes that are not UTF-8"),
    pytest.param({"cache-control": "max-age=" + "9" * 5_000}, id="max-age of 5,000 digits"),
    pytest.param({"cache-control": "max-age=²"}, id="max-age of a superscript digit"),
]
