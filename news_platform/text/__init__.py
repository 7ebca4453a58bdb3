"""Pure facts about text: its language, its hashes, its shingles."""
