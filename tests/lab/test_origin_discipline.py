"""What the VoD server is asked for: what who quits has seen, a little more, and within a budget."""

import pytest

from experiments.film import FilmSpec, make_film
from experiments.processes import Processes
from tests.lab.conftest import House

pytestmark = [pytest.mark.lab, pytest.mark.slow]

AHEAD_SECONDS = 15.0
"""How much film may be fetched from the server and never seen."""


@pytest.fixture(scope="module")
def seconds(full):
    """How long the film is: a tenth of it is watched."""
    return 200.0 if full else 40.0


@pytest.fixture(scope="module")
def long_film(tmp_path_factory, seconds):
    spec = FilmSpec(duration_seconds=seconds, bit_rate=62_500.0, width=160, height=90)
    return make_film(tmp_path_factory.mktemp("film") / "film.mp4", spec)


@pytest.fixture
async def long_house(long_film, tmp_path):
    async with Processes(tmp_path / "logs") as processes:
        house = House(processes, long_film, tmp_path)
        await house.open()
        yield house


async def quit_at_a_tenth(house, seconds, name, *options):
    """Watch a tenth, quit; returns the report and the film's bytes up to 15 s further on."""
    watching = await house.watch(name, *options)
    await watching.wait_until(
        lambda progress: progress["position_seconds"] >= seconds / 10,
        "a tenth is seen",
        seconds / 10 + 20,
    )
    await watching.child.stop()
    report = watching.child.event("report")
    allowed = (report["position_seconds"] + AHEAD_SECONDS) * house.film_bytes / seconds
    return report, allowed


@pytest.mark.timeout(150)
async def test_who_quits_has_cost_the_server_no_more_than_15_s_beyond(
    long_house, seconds, full, figures
):
    """Alone, and with viewers around who have the film and more than enough to give."""
    lonely, most = await quit_at_a_tenth(long_house, seconds, "alone")
    for number in range(4 if full else 2):
        await long_house.watch_complete(f"peer-{number}")
    helped, _ = await quit_at_a_tenth(long_house, seconds, "among-peers")

    rate = long_house.film_bytes / seconds
    for name, report in (("alone", lonely), ("among_peers", helped)):
        beyond = report["bytes_from_origin"] / rate - report["position_seconds"]
        figures[f"quit_{name}_seconds_beyond"] = round(beyond, 2)
        figures[f"quit_{name}_origin_bytes"] = report["bytes_from_origin"]
        figures[f"quit_{name}_by_reason"] = report["origin_payload_by_reason"]
        figures[f"quit_{name}_regret_bytes"] = report["bytes_regretted"]
    assert lonely["bytes_from_origin"] <= most
    assert lonely["bytes_from_peers"] == 0
    # With peers around, the server gives the first seconds only, whatever is watched.
    assert helped["bytes_from_peers"] > helped["bytes_from_origin"]
    assert helped["bytes_from_origin"] <= 6 * rate


@pytest.mark.timeout(100)
async def test_when_the_budget_is_spent_peers_carry_the_film(house, figures):
    """Six tenths of the film may come from the server. Alone, a viewer would fetch more than that
    before the one who has the film comes; so it fetches less early, and lasts until then."""
    await house.open()
    budget = house.film_bytes * 6 // 10

    watching = await house.watch("viewer", "--origin-day", f"{budget}B")
    await watching.wait_position(1.0)
    await house.watch_complete("peer")
    await watching.wait_until(
        lambda progress: progress["pieces_have"] == progress["pieces"], "it has the film", 30.0
    )
    await watching.child.stop()
    report = await watching.report()

    house.assert_whole(watching, report)
    fetched = sum(report["origin_payload_by_reason"].values())
    figures["budget_bytes"] = budget
    figures["budget_fetched_bytes"] = fetched
    figures["budget_over_bytes"] = max(0, fetched - budget)
    figures["budget_stalls"] = report["stalls"]
    figures["budget_refused_pieces"] = report["pieces_refused_by_budget"]
    assert fetched <= budget
    assert report["bytes_from_peers"] >= house.film_bytes - budget - 2 * 64 * 1024
