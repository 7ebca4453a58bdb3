"""The settings of the explorer, its API and the MCP server."""

from news_platform.setting_sections.fields import Names, Section, env, secret


class ServerSettings(Section):
    """Who may use the explorer, and how it and the Dagster UI find each other."""

    token: str | None = secret(
        "NEWS_PLATFORM_SERVER_TOKEN",
        "token that every request must carry, as a bearer token or as the password of a login; "
        "needed to serve on an address other than loopback",
    )
    requests_per_minute: int = env(
        "NEWS_PLATFORM_SERVER_RATE", "requests per minute and client; 0: no limit", 1200
    )
    trusted_proxies: Names = env(
        "NEWS_PLATFORM_TRUSTED_PROXIES",
        "addresses or networks of proxies, separated by commas, whose X-Forwarded-For names the "
        "client that the rate limit counts",
        (),
    )
    url: str | None = env(
        "NEWS_PLATFORM_SERVER_URL", "where the explorer is served; asset pages link to it"
    )
    dagster_url: str | None = env(
        "NEWS_PLATFORM_DAGSTER_URL", "where the Dagster UI is served; the explorer links to it"
    )
    mcp_address: str | None = env(
        "NEWS_PLATFORM_MCP_ADDRESS", "HOST:PORT on which `mcp` speaks HTTP; unset: stdio"
    )
