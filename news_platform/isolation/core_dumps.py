"""Forbid core files: a crash while foreign bytes are parsed must not write the memory to disk."""

import resource


def forbid_core_dumps() -> None:
    """Let no crash of this process, or of one that it starts, leave a core file.

    A core file holds the environment and the settings, and with them every secret.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # The hard limit stays: whoever debugs a process may raise the soft one again.
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
