"""mpv: told the film, its subtitles and where to begin; tells where it is, and what fails."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Sequence
from typing import Any, Final

from toast.common.waiting import wait_event
from toast.gateway.players.base import Listener, Opening
from toast.gateway.players.errors import MpvRefusal, PlayerError
from toast.gateway.players.ipc import MpvConnection
from toast.gateway.players.process import Process, run_process

__all__ = ["MpvPlayer"]

_POLL_SECONDS: Final = 1.0
_QUIT_BY_PERSON: Final = 4
_MOST_ERRORS: Final = 10
_NO_DECODER = re.compile(r"Failed to initialize a decoder for codec '([^']*)'")
_OPTIONS: Final = (
    "--quiet",
    "--no-input-terminal",
    "--idle=no",
    # It reads ahead at its own pace, and so may wait long for bytes that are not due yet.
    "--network-timeout=0",
    "--cache-secs=60",
)


class MpvPlayer:
    """mpv, spoken to through its JSON IPC (mpv 0.34 or later).

    Args:
        command: the program and arguments of the person's own.
    """

    name = "mpv"

    def __init__(self, command: Sequence[str] = ("mpv",)) -> None:
        self._command = command

    async def play(self, opening: Opening, listener: Listener) -> None:
        """Play a film until its end, or until the person closes mpv.

        Raises:
            PlayerError: it cannot be started, cannot play the film, or died.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            words = [
                *self._command,
                *_OPTIONS,
                f"--force-media-title={opening.title}",
                f"--input-ipc-client=fd://{theirs.fileno()}",
            ]
            if opening.start_seconds:
                words.append(f"--start={opening.start_seconds:.3f}")
            async with run_process(
                self.name, [*words, "--", opening.url], pass_fds=[theirs.fileno()]
            ) as process:
                theirs.close()
                await _Conversation(opening, listener).hold(ours, process)


class _Conversation:
    """What is said between the start of mpv and its end."""

    def __init__(self, opening: Opening, listener: Listener) -> None:
        self._opening = opening
        self._listener = listener
        self._news = asyncio.Event()
        self._loaded = asyncio.Event()
        self._paused = False
        self._rate = 1.0
        self._failure: str | None = None
        self._errors: list[str] = []
        self._verdicts: list[str] = []  # what mpv makes of the errors of its parts

    async def hold(self, end: socket.socket, process: Process) -> None:
        """Talk until mpv ends.

        Raises:
            PlayerError: it could not play the film, or died.
        """
        mpv = await MpvConnection.open(end, self._on_event)
        listening = asyncio.create_task(mpv.listen())
        following = asyncio.create_task(self._follow(mpv))
        try:
            code = await process.wait()
            await listening  # what it said last
        finally:
            for task in (listening, following):
                task.cancel()
            await asyncio.gather(listening, following, return_exceptions=True)
        if code not in (0, _QUIT_BY_PERSON) or self._failure is not None:
            raise PlayerError(self._why_not(code, process.last_words))

    async def _follow(self, mpv: MpvConnection) -> None:
        """Tell the position once a second, and whenever something changes."""
        with contextlib.suppress(MpvRefusal):
            await mpv.command("request_log_messages", "error")
            await mpv.command("observe_property", 1, "pause")
            await mpv.command("observe_property", 2, "speed")
            await self._loaded.wait()
            await self._add_subtitles(mpv)
            while True:
                await wait_event(self._news, _POLL_SECONDS)
                await self._tell(mpv)

    async def _add_subtitles(self, mpv: MpvConnection) -> None:
        for number, each in enumerate(self._opening.subtitles):
            how = "auto" if number else "select"
            try:
                await mpv.command("sub-add", each.url, how, each.label, each.language or "")
            except MpvRefusal as refusal:
                self._listener.trouble(f"mpv cannot read the subtitles '{each.label}' ({refusal})")

    async def _tell(self, mpv: MpvConnection) -> None:
        paused, rate = self._paused, self._rate
        try:
            seconds = await mpv.command("get_property", "time-pos")
        except MpvRefusal:
            return  # nothing is shown yet, or it is at its end
        if isinstance(seconds, int | float):
            self._listener.position(max(0.0, seconds), paused=paused, rate=rate)

    def _on_event(self, event: dict[str, Any]) -> None:
        match event:
            case {"event": "property-change", "name": "pause", "data": bool(paused)}:
                self._paused = paused
                self._news.set()
            case {"event": "property-change", "name": "speed", "data": int() | float() as rate}:
                self._rate = float(rate)
                self._news.set()
            case {"event": "seek" | "playback-restart"}:
                self._news.set()
            case {"event": "file-loaded"}:
                self._loaded.set()
            case {"event": "end-file", "reason": "error"}:
                self._failure = str(event.get("file_error", "unknown error"))
            case {"event": "log-message", "text": str(text)}:
                self._on_error(str(event.get("prefix", "")), text.strip())

    def _on_error(self, prefix: str, text: str) -> None:
        match = _NO_DECODER.search(text)
        if match is not None:
            what = {"vd": "video", "ad": "audio"}.get(prefix, "film")
            codec = f" '{match.group(1)}'" if match.group(1) else ""
            text = f"mpv has no decoder for this film's {what} codec{codec}"
            self._listener.trouble(text)
        kept = self._verdicts if prefix == "cplayer" else self._errors
        if text and text not in kept and len(kept) < _MOST_ERRORS:
            kept.append(text)

    def _why_not(self, code: int, last_words: str) -> str:
        missing = [text for text in self._errors if text.startswith("mpv has no decoder")]
        if missing:
            return f"{missing[0]}: try another player"
        if self._failure is None:
            return f"mpv ended with code {code}: {last_words or 'it said nothing'}"
        reasons = self._verdicts or self._errors[-1:] or [self._failure]
        return f"mpv cannot play this film: {' / '.join(text.rstrip('.') for text in reasons)}"
