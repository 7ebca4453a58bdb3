"""Survey researched domains: read research files, store robots.txt and sitemap facts per domain."""
