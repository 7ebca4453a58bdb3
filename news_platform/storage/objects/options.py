"""How to reach a store: endpoint, region, keys and patience; secrets never show in its repr."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Settings of one store; the defaults suit a local folder and a signed-in cloud account.

    Without keys the credentials come from boto3 or google-auth, so whatever they find
    (environment, profile, workload identity) is used. `service_account_key` is the JSON text.
    `backoff_seconds` is the shortest wait before a retry; None means 0.1 s, and 1 s for https,
    since public archives ask for at most one retry a second.
    """

    endpoint_url: str | None = field(default=None, repr=False)
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    service_account_key: str | None = field(default=None, repr=False)
    anonymous: bool = False
    allow_http: bool = False
    retries: int = 8
    timeout_seconds: float = 60.0
    backoff_seconds: float | None = None


DEFAULT_OPTIONS = StoreOptions()
