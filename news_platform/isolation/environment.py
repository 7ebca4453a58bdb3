"""Keep secrets from crashes and from worker processes, which parse what strangers wrote.

A worker starts with the variables that Python and native libraries need to run. Anything else, such
as a key or password, must not be found there by a page that takes a worker over, nor be readable in
/proc. A pool may send a worker the few others it needs through its pipe.
"""

import resource
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

# Locale, time zone, folders, certificates, Python's own switches, and the limits of native
# libraries. None of them holds a secret; a proxy's URL may, and is not here.
_ALLOWED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TZDIR",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PYTHON*",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "MALLOC_*",
    "OMP_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
)


def worker_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that every worker starts with."""
    return named_variables(environ, _ALLOWED)


def named_variables(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Return the variables whose names match one of the patterns, such as `LC_*`."""
    wanted = tuple(patterns)
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatchcase(name, pattern) for pattern in wanted)
    }


def forbid_core_dumps() -> None:
    """Let no crash of this process, or of one that it starts, leave a core file.

    A core file holds the environment and the settings, and with them every secret.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # The hard limit stays: whoever debugs a process may raise the soft one again.
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
