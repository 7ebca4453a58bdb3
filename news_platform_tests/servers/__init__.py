"""Our own servers as a user starts them: the webserver and the daemon, on loopback."""
