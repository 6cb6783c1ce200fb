"""Everything that the project must show, in full size, kept with how it was obtained.

Each cell is one command and what must be true of its outcome. Its result is one small JSON file:
command, date, commit, machine, figures and verdict. A result stands for the commit and the command
that it was obtained with, also a bad one: it is not obtained again until asked for, since trying
until it succeeds would be no evidence.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.cells import CELLS, Cell, judge, read_outcome
from experiments.errors import LabError, ProcessError
from experiments.processes import Child, Processes, program

__all__ = ["Evidence", "Result", "checkout", "commit_of"]

_GRACE_SECONDS = 30.0
_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a cell, and how: the contents of its file."""

    cell: str
    command: str
    """As a person would type it at the root of the checkout."""
    commit: str
    """Of the code; with a + and a digest of the changes if there were any."""
    date: str
    """When it began, UTC."""
    seconds: float
    """How long it took."""
    kernel: str
    cores: int
    load: float
    """Programs that wanted a core in the minute before: whether the machine was ours alone."""
    exit_code: int
    last_line: str
    """The last line that it printed."""
    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    """What did not hold; empty if all did."""

    @property
    def held(self) -> bool:
        """Whether it shows what it must."""
        return not self.wrong


class Evidence:
    """The results in a folder, and the means to obtain the missing ones.

    Args:
        folder: where results are kept; made when the first one is.
        root: the checkout that they are about.
        commit: its state.
        cells: what is to be shown.
    """

    def __init__(
        self, folder: Path, root: Path, commit: str, cells: Sequence[Cell] = CELLS
    ) -> None:
        self._folder = folder
        self._root = root
        self._commit = commit
        self.cells = tuple(cells)

    def select(self, names: Sequence[str]) -> tuple[Cell, ...]:
        """The cells of these names in their order; all of them if there are none.

        Raises:
            LabError: there is no such cell.
        """
        known = {cell.name for cell in self.cells}
        if strangers := [name for name in names if name not in known]:
            raise LabError(f"there is no cell '{strangers[0]}': 'toast-lab evidence --list'")
        return tuple(cell for cell in self.cells if not names or cell.name in names)

    def known(self, cell: Cell) -> Result | None:
        """The result that stands for this cell as it is now, judged by the checks of now."""
        try:
            stored = json.loads(self._path(cell).read_text(encoding="utf-8"))
            result = Result(**stored)
            exit_code, figures = int(result.exit_code), dict(result.figures)
        except (OSError, ValueError, TypeError):
            return None  # none, half of one, or of an older kind: it is obtained anew
        if (result.commit, result.command) != (self._commit, shlex.join(cell.command)):
            return None
        wrong = judge(cell, exit_code, figures, float(result.seconds))
        return Result(**{**asdict(result), "wrong": wrong})

    async def obtain(self, cell: Cell) -> Result:
        """Run a cell, and keep what came of it.

        Raises:
            LabError: it cannot be run, or its result cannot be kept.
        """
        began, load = time.monotonic(), os.getloadavg()[0]
        date = datetime.now(UTC).isoformat(timespec="seconds")
        exit_code, lines = await self._run(cell)
        seconds = round(time.monotonic() - began, 3)
        figures = read_outcome(lines)
        result = Result(
            cell=cell.name,
            command=shlex.join(cell.command),
            commit=self._commit,
            date=date,
            seconds=seconds,
            kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
            cores=os.cpu_count() or 1,
            load=round(load, 2),
            exit_code=exit_code,
            last_line=lines[-1] if lines else "",
            figures=figures,
            wrong=judge(cell, exit_code, figures, seconds),
        )
        self._keep(cell, result)
        return result

    async def _run(self, cell: Cell) -> tuple[int, list[str]]:
        """Exit code and what was printed; standard error's lines are among them."""
        name, *arguments = cell.command
        first = [sys.executable, "-m", "pytest"] if name == "pytest" else [program(name)]
        async with Processes(self._folder / "logs") as processes:
            child = await processes.start(cell.name, [*first, *arguments], folder=self._root)
            try:
                async with asyncio.timeout(cell.limit_seconds):
                    exit_code = await child.wait_end()
            except TimeoutError:
                await _interrupt(child)
                exit_code = -signal.SIGINT
            except asyncio.CancelledError:
                # It has programs of its own to end, which pytest does on SIGINT alone.
                await _interrupt(child)
                raise
        log = self._folder / "logs" / f"{cell.name}.log"
        text = log.read_text(encoding="utf-8", errors="replace")
        return exit_code, [line.strip() for line in text.splitlines() if line.strip()]

    def _keep(self, cell: Cell, result: Result) -> None:
        path = self._path(cell)
        unfinished = path.with_suffix(".new")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(asdict(result), indent=2, ensure_ascii=False)
            unfinished.write_text(text + "\n", encoding="utf-8")
            unfinished.replace(path)
        except OSError as error:
            raise LabError(f"no result can be kept in {self._folder}: {error.strerror}") from error
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink()

    def _path(self, cell: Cell) -> Path:
        return self._folder / f"{cell.name}.json"


def checkout() -> Path:
    """The root of the checkout that this program runs from.

    Raises:
        LabError: it is installed without one, so there is nothing that a result could be about.
    """
    root = _PACKAGE.parent
    if not (root / "tests" / "lab").is_dir():
        raise LabError("evidence is obtained in a checkout of the project: install it with -e")
    return root


def commit_of(root: Path) -> str:
    """The commit of a checkout, with a digest of what was changed since.

    Raises:
        LabError: it is no checkout, or git is not installed.
    """
    commit = _git(root, "rev-parse", "--short=12", "HEAD").strip()
    changes = _git(root, "diff", "HEAD") + _git(root, "status", "--porcelain")
    if not changes:
        return commit
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:8]}"


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=True,
            timeout=60,
        )
    except subprocess.CalledProcessError as error:
        reason = (error.stderr or "").strip() or f"exit code {error.returncode}"
        raise LabError(f"the state of {root} is not known: {reason}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"git does not tell the state of {root}: {error}") from error
    return done.stdout


async def _interrupt(child: Child) -> None:
    child.signal(signal.SIGINT)
    with contextlib.suppress(TimeoutError, ProcessError):
        async with asyncio.timeout(_GRACE_SECONDS):
            await child.wait_end()
