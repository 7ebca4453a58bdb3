"""Recognise consent dialogs by the names that their products give to elements."""

import re

# Prefixes of ids and classes, in the order: OneTrust, Cookiebot, Didomi, Usercentrics, TrustArc,
# Quantcast, Sourcepoint, then smaller products and plugins.
_PRODUCTS = """
onetrust ot-sdk optanon cybotcookiebot cookiebot didomi usercentrics uc-banner uc-cmp uc-overlay
truste trustarc teconsent consent-blackbar qc-cmp sp-message sp-root
axeptio borlabs ccc-notify ccc-overlay cc-banner cc-window cky- civic-cookie cli-modal cmplz
cmpbox cmpwrapper cookie-law-info cookieconsent cookiefirst cookiehub cookieyes eu-cookie evidon
fc-consent gdpr-cookie iubenda klaro lanyard-root moove-gdpr orejime osano ppms-cm silktide
sliding-popup tarteaucitron termly transcend-consent wt-cli wpcc
"""
_SUBJECTS = "cookies?|gdpr|consent"
# "cookie-policy" and "privacy-notice" also name pages and their content.
_FORMS = (
    "alert|banner|bar|box|center|centre|compliance|container|control|dialog|disclaimer|info|layer"
    "|manager|management|message|modal|notice|notification|optin|overlay|panel|pop-?up|preferences"
    "|prompt|root|settings|toast|tool|wall|widget|window|wrapper"
)
_NAME = re.compile(
    rf"(?:^|[\s-])(?:(?:{'|'.join(_PRODUCTS.split())})"
    rf"|(?:{_SUBJECTS})-?(?:{_SUBJECTS})?-?(?:{_FORMS})(?:$|[\s-])"
    r"|privacy-?(?:banner|center|centre|manager|modal|pop-?up|preferences|settings|wall)(?:$|[\s-])"
    rf"|(?:banner|notice|modal|popup|dialog|bar)-(?:cookies?|gdpr|consent)(?:$|[\s-]))"
)
_LABEL = re.compile(
    r"\bcookies?\b|\bgdpr\b|\bconsent (?:banner|dialog|manage|prefer)"
    r"|\bprivacy (?:banner|center|centre|choices|manager|notice|options|preferences|settings)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Nearly all class names have none of these letters, so the expression is rarely run.
_MARKS = (
    "cook", "consent", "gdpr", "onetrust", "ot-sdk", "optanon", "didomi", "usercentrics", "uc-",
    "truste", "trustarc", "qc-cmp", "sp_m", "sp-m", "sp_r", "sp-r", "privacy", "axeptio", "borlabs",
    "ccc-", "cc-", "cky-", "cli-", "cmp", "evidon", "iubenda", "klaro", "lanyard", "orejime",
    "osano", "ppms", "silktide", "sliding", "tarteau", "termly", "wpcc", "cybot",
)  # fmt: skip


def is_consent_name(names: str) -> bool:
    """Return whether a class or id is that of a consent dialog."""
    lower = names.lower()
    # A loop, not any(): this runs for every new class name.
    for mark in _MARKS:
        if mark in lower:
            break
    else:
        return False
    plain = lower.replace("_", "-")
    split = _CAMEL.sub("-", names).lower().replace("_", "-")
    return bool(_NAME.search(plain) or _NAME.search(split))


def is_consent_label(label: str) -> bool:
    """Return whether an `aria-label` is that of a consent dialog."""
    return _LABEL.search(label) is not None
