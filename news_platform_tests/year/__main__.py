"""Run a simulation to its end: a supervisor that starts, kills and starts the daemon again.

    python -m news_platform_tests.year FOLDER

The folder holds the options; a simulation that was ended goes on from its last step.
"""

import json
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from news_platform_tests.year.simulated import FOLDER_VARIABLE, Place

if TYPE_CHECKING:
    from news_platform_tests.year.daemon import SimulatedDaemon

_TICKS_EVERY = timedelta(days=1)
# How often runs end and are launched; sensors tick less often, as the options say.
_RUNS_EVERY = timedelta(minutes=30)
# The kill comes within so many seconds, wherever the daemon then is.
_KILL_SECONDS = 1.5


def main(folder: str) -> int:
    """Run until a life ends by itself; return its exit code."""
    os.environ[FOLDER_VARIABLE] = folder
    place = Place(Path(folder).resolve())
    # Bound here and served by each life, so that the address never changes.
    listener = socket.create_server(("127.0.0.1", 0))
    place.write_webhook(listener.getsockname()[1])
    # Imported once, before the forks: each life then starts at once.
    from news_platform_tests.year import daemon, definitions, launcher  # noqa: F401

    while (code := _one_life(place, listener, _live)) == -signal.SIGKILL:
        pass
    return code or _one_life(place, listener, _judge)


def _one_life(
    place: Place,
    listener: socket.socket,
    task: Callable[[Place, Callable[[float], object]], None],
) -> int:
    """Fork a process that goes on from the last step; kill it when it says so."""
    orders, order = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(orders)
        code = 1
        try:
            _serve_webhook(place, listener)
            task(place, lambda delay: os.write(order, f"{delay}\n".encode()))
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(order)
    with os.fdopen(orders) as lines:
        for line in lines:
            time.sleep(float(line))
            os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _serve_webhook(place: Place, listener: socket.socket) -> None:
    """Write every alert to the log of alerts."""

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with place.alerts.open("ab") as log:
                log.write(body + b"\n")
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    server = HTTPServer(("127.0.0.1", 0), Webhook, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _judge(place: Place, _: Callable[[float], object]) -> None:
    """Write all figures of the finished simulation."""
    import dagster as dg

    from news_platform_tests.year.daemon import frozen
    from news_platform_tests.year.definitions import RESOURCES, RULES
    from news_platform_tests.year.figures import build_undisturbed, differences, read_figures

    with frozen(place.plan.end), dg.DagsterInstance.from_config(str(place.home)) as instance:
        figures = read_figures(place, instance)
        figures.stale = {one.asset: dict(one.stale(RESOURCES)) for one in RULES}
        undisturbed = build_undisturbed(place)
        figures.different = differences(RESOURCES.data_root.store, undisturbed.data_root.store)
    document = asdict(figures) | {
        "run_ratio": figures.run_ratio,
        "byte_ratio": figures.byte_ratio,
        "longest_wait": figures.longest_wait.total_seconds(),
        "kills": _read_state(place).kills,
    }
    (place.folder / "figures.json").write_text(json.dumps(document, indent=1))


def _live(place: Place, ask_for_kill: Callable[[float], object]) -> None:
    """Go on from the last step to the end."""
    import dagster as dg

    from news_platform_tests.year.daemon import SimulatedDaemon, frozen
    from news_platform_tests.year.definitions import defs

    state, plan = _read_state(place), place.plan
    with (
        frozen(state.now),
        dg.DagsterInstance.from_config(str(place.home)) as instance,
        SimulatedDaemon(place, instance, defs) as daemon,
    ):
        daemon.adopt_runs()
        while state.now <= plan.end:
            now = state.now
            _write_state(place, state)
            with frozen(now):
                place.deliver(now, since=state.delivered_at)
                _ask_for_kill(place, state, ask_for_kill)
                if now >= plan.start + timedelta(days=plan.options.backfill_on):
                    daemon.begin_backfill(now, "raw_news")
                daemon.step(now, is_tick=plan.is_tick(now))
                if now - state.ticks_at >= _TICKS_EVERY:
                    _log_ticks(daemon, state)
            state.delivered_at = now
            # Without a run, nothing happens before the next tick; at the end, little after it.
            is_drain = now > plan.arrivals[-1].at
            idle_until = plan.next_tick(now, count=2 if is_drain else 1)
            state.now = idle_until if daemon.is_idle else now + _RUNS_EVERY
        _log_ticks(daemon, state)
    _write_state(place, state)


def _ask_for_kill(place: Place, state: "_State", ask: Callable[[float], object]) -> None:
    """Ask for a kill that is due; it comes while this step or one of the next is in work."""
    plan = place.plan
    if state.kills < len(plan.kills) and plan.kills[state.kills] <= state.now:
        state.kills += 1
        _write_state(place, state)
        rng = random.Random(f"kill {state.kills} {plan.options.seed}")
        ask(rng.uniform(0, _KILL_SECONDS))


def _log_ticks(daemon: "SimulatedDaemon", state: "_State") -> None:
    """Keep the ticks of the last day; what was kept before a kill is kept again."""
    daemon.log_ticks(state.ticks_at - timedelta(minutes=1))
    state.ticks_at = state.now
    sys.stderr.write(f"{state.now:%Y-%m-%d} {time.process_time():.0f} s of CPU\n")


@dataclass
class _State:
    """How far a simulation is; `delivered_at` is the last step whose WARCs are all published."""

    now: datetime
    ticks_at: datetime
    kills: int = 0
    delivered_at: datetime | None = None


_STATE = TypeAdapter(_State)


def _read_state(place: Place) -> _State:
    file = place.folder / "state.json"
    if not file.exists():
        return _State(place.plan.start, place.plan.start)
    return _STATE.validate_json(file.read_bytes())


def _write_state(place: Place, state: _State) -> None:
    fresh = place.folder / "state.json.new"
    fresh.write_bytes(_STATE.dump_json(state))
    fresh.replace(place.folder / "state.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
