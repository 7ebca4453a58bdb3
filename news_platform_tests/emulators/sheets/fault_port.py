"""The fault port: another process sets faults and advances the clock by HTTP during calls.

GET    /faults   the configured faults, those that happened since, the clock
PUT    /faults   set exactly the faults of the body, `{"share": 0.35, "seed": 1}`
DELETE /faults   clear all faults
POST   /clock    advance the clock, `{"advance_seconds": 61}`
POST   /late     apply all late changes now
"""

import json
from collections import deque
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from news_platform_tests.emulators.relay import Answer, Request
from news_platform_tests.emulators.sheets.faults import Fault, Faults
from news_platform_tests.emulators.sheets.server import SheetsEmulator


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FaultOrder(_Strict):
    """The faults of one PUT, with the names and defaults of `Faults`."""

    share: float = Field(0.0, ge=0, le=1)
    seed: int = 0
    kinds: tuple[Fault, ...] = get_args(Fault)
    planned: list[Fault | None] = []
    planned_drive: list[Fault | None] = []
    latest: int = Field(6, ge=1)
    stall_seconds: float = Field(0.0, ge=0)
    # Starting now, by the emulator's clock.
    over_quota_seconds: float = Field(0.0, ge=0)

    def faults(self, *, now: float) -> Faults:
        """Return them as the emulator uses them."""
        return Faults(
            share=self.share,
            seed=self.seed,
            kinds=self.kinds,
            planned=deque(self.planned),
            planned_drive=deque(self.planned_drive),
            latest=self.latest,
            stall_seconds=self.stall_seconds,
            over_quota_until=now + self.over_quota_seconds,
        )


class _Step(_Strict):
    advance_seconds: float = Field(ge=0)


@dataclass(frozen=True, slots=True)
class FaultPort:
    """A service that changes the faults of another one."""

    emulator: SheetsEmulator

    def answer(self, request: Request) -> Answer:
        """Carry out one request and answer with the state after it."""
        body = request.body or b"{}"
        try:
            match request.method, request.path:
                case "PUT", "/faults":
                    order = FaultOrder.model_validate_json(body)
                    self.emulator.set_faults(order.faults(now=self.emulator.now()))
                case "DELETE", "/faults":
                    self.emulator.set_faults(Faults())
                case "POST", "/clock":
                    self.emulator.advance(_Step.model_validate_json(body).advance_seconds)
                case "POST", "/late":
                    return _json(200, {"applied": self.emulator.flush()})
                case "GET", "/faults":
                    pass
                case other:
                    return _json(404, {"error": f"no such request: {' '.join(other)}"})
        except ValidationError as error:
            return _json(400, {"error": str(error)})
        return _json(200, self._state())

    def _state(self) -> dict[str, Any]:
        faults, now = self.emulator.faults, self.emulator.now()
        return {
            "share": faults.share,
            "seed": faults.seed,
            "kinds": faults.kinds,
            "planned": list(faults.planned),
            "planned_drive": list(faults.planned_drive),
            "latest": faults.latest,
            "stall_seconds": faults.stall_seconds,
            "over_quota_seconds": max(0.0, faults.over_quota_until - now),
            "happened": faults.happened,
            "clock_seconds": now,
        }


def _json(status: int, document: dict[str, Any]) -> Answer:
    body = json.dumps(document).encode()
    return Answer(status, {"content-type": "application/json"}, body, len(body))
