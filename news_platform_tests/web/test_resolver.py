"""Host names to addresses: one question at a time, answers and failures remembered."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from news_platform.errors import FetchError
from news_platform.web.resolver import CachingResolver, ResolverOptions

OPTIONS = ResolverOptions(
    ttl_seconds=60, negative_ttl_seconds=0.2, timeout_seconds=1, control_name=""
)
T = TypeVar("T")
NO_SUCH_NAME = socket.gaierror(socket.EAI_NONAME, "no such name")


class Phonebook:
    """A lookup that counts and answers in turn."""

    def __init__(self, *answers: Sequence[str] | OSError, slow_seconds: float = 0) -> None:
        self.answers = answers
        self.asked = 0
        self.slow_seconds = slow_seconds

    def __call__(self, host: str) -> Sequence[str]:
        self.asked += 1
        time.sleep(self.slow_seconds)
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        if isinstance(answer, OSError):
            raise answer
        return answer


def run(
    lookup: Phonebook,
    ask: Callable[[CachingResolver], Awaitable[T]],
    options: ResolverOptions = OPTIONS,
) -> T:
    async def go() -> T:
        resolver = CachingResolver(
            lookup, host_map={"a.example": ("127.0.0.1", 4321)}, options=options
        )
        try:
            return await ask(resolver)
        finally:
            await resolver.close()

    return asyncio.run(go())


def reason(lookup: Phonebook, options: ResolverOptions = OPTIONS) -> str:
    with pytest.raises(FetchError) as caught:
        run(lookup, lambda resolver: resolver.addresses("a.test"), options)
    assert caught.value.thing == "a.test"
    return caught.value.reason


def test_many_askers_share_one_lookup() -> None:
    async def ask(resolver: CachingResolver) -> list[tuple[str, ...]]:
        return await asyncio.gather(*(resolver.addresses("a.test") for _ in range(50)))

    book = Phonebook(["8.8.8.8", "8.8.4.4"], slow_seconds=0.05)
    assert set(run(book, ask)) == {("8.8.8.8", "8.8.4.4")}
    assert book.asked == 1


def test_an_asker_who_gives_up_does_not_spoil_the_answer_for_the_others() -> None:
    async def ask(resolver: CachingResolver) -> tuple[str, ...]:
        hasty = asyncio.create_task(resolver.addresses("a.test"))
        patient = asyncio.create_task(resolver.addresses("a.test"))
        await asyncio.sleep(0.01)
        hasty.cancel()
        return await patient

    assert run(Phonebook(["8.8.8.8"], slow_seconds=0.05), ask) == ("8.8.8.8",)


def test_private_addresses_are_left_out_of_a_mixed_answer() -> None:
    book = Phonebook(["10.0.0.1", "8.8.8.8", "::1"])
    assert run(book, lambda resolver: resolver.addresses("a.test")) == ("8.8.8.8",)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (["10.0.0.1"], "blocked_address"),
        (NO_SUCH_NAME, "nxdomain"),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), "dns"),
    ],
)
def test_a_failure_has_its_reason(answer: Sequence[str] | OSError, expected: str) -> None:
    assert reason(Phonebook(answer)) == expected


def test_a_name_server_that_does_not_answer_is_given_up() -> None:
    slow = Phonebook(["8.8.8.8"], slow_seconds=0.4)
    assert reason(slow, replace(OPTIONS, timeout_seconds=0.05)) == "dns"


def test_a_failure_is_remembered_for_a_while_and_then_asked_again() -> None:
    async def ask(resolver: CachingResolver) -> int:
        for _ in range(5):
            with pytest.raises(FetchError):
                await resolver.addresses("a.test")
        asked = book.asked
        await asyncio.sleep(OPTIONS.negative_ttl_seconds + 0.05)
        assert await resolver.addresses("a.test") == ("8.8.8.8",)
        return asked

    book = Phonebook(NO_SUCH_NAME, ["8.8.8.8"])
    assert run(book, ask) == 1
    assert book.asked == 2


def test_an_answer_is_asked_again_when_its_time_is_over() -> None:
    async def ask(resolver: CachingResolver) -> None:
        await resolver.addresses("a.test")
        await resolver.addresses("a.test")

    book = Phonebook(["8.8.8.8"])
    run(book, ask, replace(OPTIONS, ttl_seconds=0))
    assert book.asked == 2


def test_a_machine_that_finds_no_name_at_all_is_offline_and_no_domain_is_missing() -> None:
    assert reason(Phonebook(NO_SUCH_NAME), replace(OPTIONS, control_name="always.test")) == "dns"


def test_a_missing_name_is_believed_once_the_name_server_has_found_another() -> None:
    book = Phonebook(NO_SUCH_NAME, ["8.8.8.8"])
    assert reason(book, replace(OPTIONS, control_name="always.test")) == "nxdomain"
    assert book.asked == 2
