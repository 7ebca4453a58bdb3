"""Name the process that holds a lease, so that others on its machine can see that it is gone.

A killed process releases nothing, and its leases would be waited for until they expire. A name has
the machine (boot and process namespace), the process id and its start time, because ids are reused.
Where there is no /proc, the name says nothing of this and nobody is ever found to be gone.
"""

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
# Counted from the end of the command name, which may itself contain spaces: field 22 of proc(5).
_START_FIELD = 19


def process_owner(name: str) -> str:
    """Return `name` with the identity of this process."""
    machine, started = _machine(), _started(os.getpid())
    return f"{name}@{machine}/{os.getpid()}/{started}" if machine and started else name


def is_gone(owner: str) -> bool:
    """Return whether the owner is a process of this machine that has ended."""
    machine, _, process = owner.rpartition("@")[2].partition("/")
    pid, _, started = process.partition("/")
    if not (machine and machine == _machine() and pid.isdecimal() and started):
        return False
    return _started(int(pid)) != started


def _machine() -> str:
    try:
        namespace = _NAMESPACE.readlink().name.strip("pid:[]")
        return f"{_BOOT.read_text(encoding='ascii').strip()}-{namespace}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the boot; empty if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[_START_FIELD].decode("ascii")
