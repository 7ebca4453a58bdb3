"""Which query parameters only say how a reader came to a page, never which page it is.

The list is explicit on purpose: a name is here because a known service adds it. A bare `source`,
`from`, `id` or `ref` may choose the page and is never dropped by its name alone.
"""

# Families: any name that starts so, whatever follows.
TRACKER_PREFIXES = (
    "utm_",  # Google Analytics and everybody who copied it
    "mtm_",  # Matomo
    "matomo_",
    "piwik_",
    "pk_",  # Matomo's older names
    "hsa_",  # HubSpot ads
    "oly_",  # Omeda newsletters
    "vero_",  # Vero newsletters
    "at_campaign",  # AT Internet, used by public broadcasters
    "at_custom",
    "at_format",
    "at_link_",
    "at_medium",
    "at_ptr_",
    "guce_",  # Yahoo consent
    "ns_",  # comScore
)

# Click ids of advertisers: Google, Meta, Microsoft, Yandex, X, TikTok, Reddit, LinkedIn, Snap.
_CLICK_IDS = """
gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid _ga _gl
fbclid fb_action_ids fb_action_types fb_ref fb_source igshid igsh mibextid
msclkid yclid ymclid ysclid _openstat twclid ttclid rdt_cid li_fat_id sccid scclid
clickid irclickid irgwc wickedid epik
"""
# Mailchimp, Marketo, HubSpot, Drip, Klaviyo, Beehiiv.
_NEWSLETTERS = "mc_cid mc_eid mkt_tok _hsenc _hsmi __hssc __hstc __hsfp hsctatracking _ke _kx"
# Publishers' own campaign marks and share buttons.
_CAMPAIGNS = """
bxid cmpid ncid icid ito ocid s_cid s_kwcid ftcamp ftag smid smtyp sr_share traffic_source
guccounter wt_mc wt_zmc xtor ref_src ref_url referringsource soc_src soc_trk
__twitter_impression partnerid rb_clickid spm
"""
# Session ids that some servers hang on every link.
_SESSIONS = "phpsessid jsessionid aspsessionid"

TRACKER_NAMES = frozenset(" ".join((_CLICK_IDS, _NEWSLETTERS, _CAMPAIGNS, _SESSIONS)).split())


def is_tracker(name: str) -> bool:
    """Say whether the query parameter `name`, in any case, only tracks the reader."""
    folded = name.lower()
    return folded in TRACKER_NAMES or folded.startswith(TRACKER_PREFIXES)
