"""What the redirects before an answer say about the address that was asked."""

from news_platform.web.fetch import Response

_PERMANENT = frozenset((301, 308))


def is_permanent_redirect(answer: Response) -> bool:
    """Tell whether every hop to the final address was permanent, and there was one."""
    return bool(answer.redirect_statuses) and _PERMANENT.issuperset(answer.redirect_statuses)
