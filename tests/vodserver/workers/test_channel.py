"""Questions and news between two processes, here two ends in one loop."""

import asyncio

import pytest

from vodserver.errors import ChannelError, ReadError
from vodserver.workers.frames import encode


class Clerk:
    """Does what the question says."""

    def __init__(self):
        self.heard = []
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def asked(self, what, args):
        self.heard.append((what, args))
        match what:
            case "echo":
                return args, bytes(reversed(range(args.get("size", 0))))
            case "refuse":
                raise ReadError("there is none")
            case "break":
                raise KeyError("a fault in the program")
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()

    def told(self, what, args):
        self.heard.append((what, args))
        if what == "nonsense":
            raise KeyError(what)


@pytest.fixture
async def ends(join):
    ours, theirs = await join()
    clerk = Clerk()
    ours.start(Clerk())
    theirs.start(clerk)
    return ours, theirs, clerk


async def test_a_question_is_answered_with_its_payload(ends):
    ours, _, _ = ends

    assert await ours.ask("echo", size=4) == ({"size": 4}, b"\3\2\1\0")


async def test_both_ends_ask_at_once_and_answers_find_their_questions(ends):
    ours, theirs, _ = ends
    asked = [end.ask("echo", number=n) for n in range(50) for end in (ours, theirs)]

    answers = await asyncio.gather(*asked)
    assert [args["number"] for args, _ in answers] == [n for n in range(50) for _ in range(2)]


async def test_a_refusal_says_why_and_a_fault_does_not(ends, caplog):
    """What goes wrong inside is for the log of the process that it went wrong in."""
    ours, _, _ = ends

    with pytest.raises(ChannelError, match=r"^there is none$"):
        await ours.ask("refuse")
    with pytest.raises(ChannelError) as caught:
        await ours.ask("break")
    assert "KeyError" not in str(caught.value)
    assert "KeyError" in caplog.text
    assert (await ours.ask("echo"))[0] == {}


async def test_who_does_not_wait_any_more_has_the_question_cancelled(ends):
    ours, _, clerk = ends
    task = asyncio.create_task(ours.ask("wait"))
    await clerk.begun.wait()

    task.cancel()

    async with asyncio.timeout(5):
        await clerk.cancelled.wait()
    assert (await ours.ask("echo", n=1))[0] == {"n": 1}


async def test_a_question_that_is_cancelled_at_once_is_not_begun(ends):
    ours, _, clerk = ends
    task = asyncio.create_task(ours.ask("wait"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await ours.ask("echo")
    assert not clerk.begun.is_set()


async def test_a_question_is_begun_before_later_news_is_heard(ends):
    """So that leave is given before it is taken back."""
    ours, _, clerk = ends
    task = asyncio.create_task(ours.ask("echo", first=True))
    await asyncio.sleep(0)
    await task
    ours.tell("late", n=1)
    await ours.ask("echo")

    assert [what for what, _ in clerk.heard] == ["echo", "late", "echo"]


async def test_when_the_other_end_goes_those_who_wait_are_told(ends):
    ours, theirs, clerk = ends
    waiting = asyncio.create_task(ours.ask("wait"))
    await clerk.begun.wait()

    await theirs.close()

    with pytest.raises(ChannelError, match="gone"):
        await waiting
    await ours.closed.wait()
    with pytest.raises(ChannelError, match="gone"):
        await ours.ask("echo")
    ours.tell("nobody")
    assert clerk.cancelled.is_set()


async def test_news_told_before_closing_arrives(ends):
    ours, theirs, clerk = ends
    for n in range(100):
        ours.tell("last words", n=n, text="x" * 10_000)
    await ours.close()

    await theirs.closed.wait()
    assert len(clerk.heard) == 100


async def test_to_abort_does_not_wait_for_an_end_that_takes_nothing(join):
    ours, _ = await join()
    for _ in range(50):
        ours.tell("much", text="x" * 100_000)

    async with asyncio.timeout(5):
        await ours.abort()


@pytest.mark.parametrize(
    "wire",
    [
        b"\xff" * 16,
        encode({}),
        encode({"ask": "one", "what": "echo", "with": {}}),
        encode({"tell": "x", "with": []}),
        encode({"tell": "nonsense", "with": {}}),
    ],
)
async def test_what_makes_no_sense_closes_the_channel(ends, caplog, wire):
    ours, theirs, _ = ends
    ours._writer.write(wire)

    async with asyncio.timeout(5):
        await theirs.closed.wait()
        await ours.closed.wait()
    assert "broken" in caplog.text


async def test_an_answer_that_nobody_asked_for_is_passed_over(ends):
    ours, _, _ = ends
    ours._writer.write(encode({"answer": 77, "result": {}}) + encode({"cancel": 78}))

    assert (await ours.ask("echo", n=2))[0] == {"n": 2}
