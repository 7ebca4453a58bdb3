"""When a task counts as held, lost, or not sure yet."""

from dataclasses import dataclass, field

from news_platform.cluster.launcher import Liveness, TaskState


@dataclass
class _Workers:
    """Workers with replies and a clock that a test sets."""

    now: float = 0.0
    held: frozenset[str] = frozenset()
    away: bool = False
    questions: list[float] = field(default_factory=list)

    def ask(self) -> frozenset[str]:
        self.questions.append(self.now)
        if self.away:
            raise ConnectionError("the broker is down")
        return self.held

    def liveness(self) -> Liveness:
        return Liveness(list_held=self.ask, clock=lambda: self.now, silence_seconds=20.0)


def _states(workers: _Workers, liveness: Liveness, times: list[float]) -> list[TaskState]:
    found = []
    for workers.now in times:
        found.append(liveness.state("task"))
    return found


def test_a_task_is_lost_when_nobody_held_it_for_the_whole_silence() -> None:
    workers = _Workers()
    states = _states(workers, workers.liveness(), [0, 10, 19.9, 20])
    assert states == [TaskState.UNSURE] * 3 + [TaskState.LOST]


def test_a_worker_that_answers_again_ends_the_silence() -> None:
    workers = _Workers()
    liveness = workers.liveness()
    _states(workers, liveness, [0, 15])
    workers.held = frozenset({"task"})
    assert _states(workers, liveness, [18]) == [TaskState.ALIVE]
    workers.held = frozenset()
    assert _states(workers, liveness, [21, 40]) == [TaskState.UNSURE] * 2


def test_a_broker_that_is_away_proves_nothing() -> None:
    workers = _Workers()
    liveness = workers.liveness()
    _states(workers, liveness, [0])
    workers.away = True
    assert _states(workers, liveness, [10, 300]) == [TaskState.UNSURE] * 2
    workers.away = False
    assert _states(workers, liveness, [301, 320, 321]) == [
        TaskState.UNSURE,
        TaskState.UNSURE,
        TaskState.LOST,
    ]


def test_a_forgotten_task_starts_its_silence_anew() -> None:
    workers = _Workers()
    liveness = workers.liveness()
    _states(workers, liveness, [0, 20])
    liveness.forget("task")
    assert _states(workers, liveness, [21]) == [TaskState.UNSURE]
