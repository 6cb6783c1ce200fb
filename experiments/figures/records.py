"""Finished runs, one small JSON file each: what was run, what came of it, by which code and where.

`FOLDER/<sweep>/<engine>-<scale>-<cell>-<seed>.json`. A file stands for its scenario and its engine,
whichever machine it comes from. Scenarios are compared by their contents and not by their names, so
that a run which two figures need is made once.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from experiments.errors import LabError, ScenarioError
from experiments.swarms.result import RunResult
from experiments.swarms.text import describe, from_plain

__all__ = ["Done", "Record", "Records", "scenario_key"]

_MOST_LOAD_SAMPLES: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of a run, and how."""

    result: RunResult
    commit: str
    """Of the code; with a + and a digest of the changes if there were any."""
    date: str
    """When it began, UTC."""
    machine: dict[str, Any]
    """Kernel, cores, and the load in the minute before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A finished run and its place: the contents of its file."""

    sweep: str
    """The figure or sweep that it belongs to."""
    engine: str
    scale: str
    """Of the figure; "-" if it has none."""
    cell: str
    seed: int
    axes: dict[str, str]
    done: Done

    @property
    def key(self) -> str:
        """What it stands for."""
        return scenario_key(self.engine, self.done.result.scenario)


def scenario_key(engine: str, described: Mapping[str, Any]) -> str:
    """The same for two runs that are the same but for their names.

    Fields that a run was made without have their defaults, and 3 is 3.0.
    """
    with contextlib.suppress(ScenarioError):  # a field of it is no more: it stands for itself
        described = describe(from_plain(described))
    plain = {name: value for name, value in described.items() if name != "name"}
    return f"{engine} {json.dumps(plain, sort_keys=True)}"


class Records:
    """The records in a folder.

    Args:
        folder: where they are; made when the first is kept.

    Attributes:
        set_aside: files that could not be read; they were renamed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set_aside: list[Path] = []
        self._by_path: dict[Path, Record] = {}
        self._by_key: dict[str, Record] = {}
        for path in sorted(folder.glob("*/*.json")):
            record = self._read(path)
            if record is not None:
                self._note(path, record)

    def __iter__(self) -> Iterator[Record]:
        """All of them."""
        return iter(self._by_path.values())

    def standing(self, key: str) -> Record | None:
        """A record that stands for the same run, wherever it lies."""
        return self._by_key.get(key)

    def at(self, sweep: str, engine: str, scale: str, cell: str, seed: int) -> Record | None:
        """The record at a place."""
        return self._by_path.get(self._path(sweep, engine, scale, cell, seed))

    def keep(self, record: Record) -> None:
        """Write a record at its place, over whatever lay there; all of it, or nothing.

        Raises:
            LabError: it cannot be written.
        """
        r = record
        path = self._path(r.sweep, r.engine, r.scale, r.cell, r.seed)
        unfinished = path.with_suffix(".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps(_to_plain(record)) + "\n", encoding="utf-8")
            unfinished.replace(path)
        except OSError as error:
            raise LabError(f"no result can be kept in {path.parent}: {error.strerror}") from error
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink()
        self._note(path, record)

    def _note(self, path: Path, record: Record) -> None:
        self._by_path[path] = record
        self._by_key[record.key] = record

    def _path(self, sweep: str, engine: str, scale: str, cell: str, seed: int) -> Path:
        return self.folder / sweep / f"{engine}-{scale}-{cell}-{seed}.json"

    def _read(self, path: Path) -> Record | None:
        """A record; what cannot be read as one is set aside, and so made anew."""
        try:
            record = _from_plain(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            aside = path.with_suffix(".json.unreadable")
            with contextlib.suppress(OSError):
                path.replace(aside)
            self.set_aside.append(aside)
            return None
        return record


def _to_plain(record: Record) -> dict[str, Any]:
    plain = asdict(record)
    done = plain.pop("done")
    result = done.pop("result")
    scenario = result.pop("scenario")
    result["load"] = _thinned(result["load"])
    return {**plain, **done, "scenario": scenario, "result": result}


def _from_plain(plain: Mapping[str, Any]) -> Record:
    """The record of a file's contents.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: they are none.
    """
    names = [field.name for field in fields(Record) if field.name != "done"]
    result = RunResult(scenario=dict(plain["scenario"]), **plain["result"])
    _ = (float(result.offload), float(result.bound), int(result.total_bytes), list(result.load))
    done = Done(
        result=result,
        commit=str(plain["commit"]),
        date=str(plain["date"]),
        machine=dict(plain["machine"]),
    )
    return Record(**{name: plain[name] for name in names}, done=done)


def _thinned(samples: list[Any]) -> list[Any]:
    """So few of the samples that the file stays small; the last is among them."""
    step = -(-len(samples) // _MOST_LOAD_SAMPLES) or 1
    return samples[::-1][::step][::-1]
