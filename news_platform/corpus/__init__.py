"""raw_news and the articles of feeds in, one table of articles and exports of it out."""
