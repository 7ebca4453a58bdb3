"""Record the first call into each module of ours, in this process and in every one it starts.

Python imports this file at start-up because its folder is on PYTHONPATH. Each line is appended at
once, so the lines of a process that is killed are kept.
"""

import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

# Workers inherit only the variables they need, and Python's own are among them.
_LOG = os.environ.get("PYTHON_WALK_LOG")
_seen: set[CodeType] = set()
_logged: set[str] = set()


def _module_of(code: CodeType) -> str | None:
    """Return the module of a function of ours; the body of a module is not a call into it."""
    path = Path(code.co_filename)
    if code.co_name == "<module>" or "news_platform" not in path.parts:
        return None
    return ".".join(path.with_suffix("").parts[path.parts.index("news_platform") + 1 :])


def _on_call(frame: FrameType, event: str, arg: object) -> None:
    code = frame.f_code
    if code in _seen:
        return
    module = _module_of(code)
    if module is not None and module not in _logged:
        if _is_beside_the_way(frame):
            return
        _logged.add(module)
        _append(module)
    _seen.add(code)


def _is_beside_the_way(frame: FrameType | None) -> bool:
    """Return whether a call belongs to the import of a module or to the server of the sample."""
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if "/news_platform/" in path and (name == "<module>" or "/sample/" in path):
            return True
        frame = frame.f_back
    return False


def begin_step(name: str) -> None:
    """Begin a step: the modules called from now on are logged again."""
    _seen.clear()
    _logged.clear()
    _append(f"# {name}")


def _append(text: str) -> None:
    """Append one line to the log; several processes write to it."""
    assert _LOG is not None
    handle = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


if _LOG:
    sys.settrace(_on_call)
    threading.settrace(_on_call)
