"""Real servers, or close stand-ins for them, on loopback."""
