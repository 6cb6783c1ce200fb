"""From a scenario to the settings of a real viewer: pure, so that it can be tried without one."""

import math
from collections.abc import Sequence
from pathlib import Path

from experiments import bound
from experiments.errors import ScenarioError
from experiments.swarms.scenario import Choking, Client, Link, Scenario
from toast.swarm import SessionSettings, Utp
from toast.viewer import Behaviour, ViewerSettings

__all__ = ["check", "note_on", "session_settings", "storage_bytes", "viewer_settings"]


_MOST_PIECE_BYTES = 64 << 20


def check(scenario: Scenario) -> None:
    """Refuse what real viewers on one machine cannot do.

    Raises:
        ScenarioError: with the name of the field.
    """
    if scenario.request_queue_seconds != int(scenario.request_queue_seconds):
        raise ScenarioError(
            f"request_queue_seconds is {scenario.request_queue_seconds:g}, and libtorrent takes"
            " whole seconds only"
        )
    if scenario.film.piece_bytes > _MOST_PIECE_BYTES:
        raise ScenarioError(
            f"film.piece_bytes is {scenario.film.piece_bytes}, and the VoD server takes at most"
            f" {_MOST_PIECE_BYTES}"
        )
    if any(link.upload_bps < 8 for link in scenario.links):
        raise ScenarioError(
            "links.upload_bps must be at least 8: libtorrent takes a cap of nothing for none"
        )


def note_on(scenario: Scenario) -> str | None:
    """What a reader of the figures must know of this engine's ways, if there is something."""
    if scenario.client is Client.TOAST and scenario.choking is Choking.SEED:
        return (
            "choking: a libtorrent peer that downloads always serves first who sends most to it;"
            " here those who take most are preferred among the others only"
        )
    return None


def session_settings(scenario: Scenario, link: Link, listen_host: str) -> SessionSettings:
    """The BitTorrent side of a viewer."""
    return SessionSettings(
        listen_host=listen_host,
        upload_rate=link.upload_rate,
        download_rate=link.download_rate,
        request_queue_seconds=int(scenario.request_queue_seconds),
        upload_slots=scenario.upload_slots,
        connections=scenario.connections,
        serves_takers=scenario.choking is Choking.SEED,
        peer_exchange=scenario.peer_exchange,
        utp=Utp.ONLY if scenario.utp else Utp.ACCEPT,
    )


def viewer_settings(scenario: Scenario, folder: Path) -> ViewerSettings:
    """How a viewer watches."""
    return ViewerSettings(
        folder=folder,
        behaviour=Behaviour(scenario.behaviour),
        picker=scenario.picker,
        picker_options=scenario.picker_options,
        horizon=scenario.horizon,
        horizon_options=scenario.horizon_options,
        neighbours=scenario.neighbours,
        neighbours_options=scenario.neighbours_options,
        buffer_fraction=scenario.buffer_fraction,
    )


def most_present(scenario: Scenario) -> int:
    """How many viewers have a film of their own on the disk at once, if nobody stalls."""
    shares = scenario.client is Client.TOAST and scenario.buffer_fraction is None
    if scenario.behaviour is bound.Behaviour.SEEDING and not shares:
        return scenario.viewers
    times: Sequence[float] = [viewer.arrives_seconds for viewer in scenario.crowd()]
    stay = scenario.film.duration_seconds
    present = first = 0
    for last, time in enumerate(times):
        while times[first] < time - stay:
            first += 1
        present = max(present, last - first + 1)
    return present


def storage_bytes(scenario: Scenario) -> int:
    """What the viewers' films take at most, all together, with the operator's two copies."""
    kept = scenario.film.film_bytes * (scenario.buffer_fraction or 1.0)
    return math.ceil(kept) * most_present(scenario) + 2 * scenario.film.film_bytes
