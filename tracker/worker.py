"""One of several processes that answer on one port.

    python -m tracker.worker FD...

The file descriptors are of its sockets, bound already. What else it must know is one line of JSON
on its standard input. It says `{"event": "listening"}` on its standard output, and ends on SIGTERM,
or when its standard input does: then the process that started it is gone.
"""

import asyncio
import json
import logging
import secrets
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from toast.common.cli import print_json
from toast.common.errors import ToastError
from toast.common.eventloop import new_loop
from tracker.ports import Ports, adopt_ports
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings
from tracker.siblings import SiblingPlace
from tracker.upkeep import read_secret

__all__ = ["Orders", "main"]


_PATHS = ("films", "snapshot", "secret", "log")


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker must know.

    Attributes:
        settings: of every worker.
        place: which one it is.
        films: list of the films that are served.
        snapshot: where the memory is kept.
        secret: file of the passkeys' secret.
        store: URL of a shared store.
        log: file for a line of each request.
    """

    settings: TrackerSettings
    place: SiblingPlace
    films: Path | None = None
    snapshot: Path | None = None
    secret: Path | None = None
    store: str | None = None
    log: Path | None = None

    def to_json(self) -> str:
        """As one line."""
        told: dict[str, Any] = {"settings": asdict(self.settings), "store": self.store}
        told["place"] = {
            "folder": str(self.place.folder),
            "number": self.place.number,
            "count": self.place.count,
            "secret": self.place.secret.hex(),
        }
        for name in _PATHS:
            path = getattr(self, name)
            told[name] = None if path is None else str(path)
        return json.dumps(told)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` made."""
        told = json.loads(text)
        place = told["place"]
        paths = {name: None if told[name] is None else Path(told[name]) for name in _PATHS}
        return cls(
            TrackerSettings(**told["settings"]),
            SiblingPlace(
                Path(place["folder"]),
                place["number"],
                place["count"],
                bytes.fromhex(place["secret"]),
            ),
            store=told["store"],
            **paths,
        )


async def _work(orders: Orders, ports: Ports) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(sys.stdin.fileno(), stop.set)  # it says nothing more: this is its end
    serving = serve_tracker(
        orders.settings,
        secrets.randbits(64),
        films=orders.films,
        snapshot=orders.snapshot,
        passkeys=None if orders.secret is None else read_secret(orders.secret),
        store=orders.store,
        place=orders.place,
        log=orders.log,
        ports=ports,
    )
    async with serving:
        print_json({"event": "listening"})
        await stop.wait()


def main() -> None:
    """Answer until told to stop."""
    # What comes from a terminal goes to all: the process that started this one tells it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(format="toast-tracker: %(message)s", level=logging.WARNING)
    orders = Orders.from_json(sys.stdin.readline())
    ports = adopt_ports([int(word) for word in sys.argv[1:]])
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_work(orders, ports))
    except ToastError as error:
        print_json({"event": "failed", "error": str(error)})
        sys.exit(1)


if __name__ == "__main__":
    main()
