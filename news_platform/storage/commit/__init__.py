"""How data becomes visible: publishing, markers and the root file."""
