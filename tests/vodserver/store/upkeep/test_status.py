"""What an operator is told."""

from tests.vodserver.conftest import flip_byte
from tests.vodserver.store.upkeep.conftest import count_on
from vodserver.store.upkeep.health import Condition
from vodserver.store.upkeep.status import disk_list, store_status
from vodserver.store.upkeep.workshop import workshop_of


async def test_a_store_that_is_well(home):
    with home.open() as store:
        workshop = workshop_of(store)
        await workshop.look(write=False)
        await store.read(home.title, 0, 100_000)
        status = await store_status(workshop)

    wanted = 2 * len(home.title.extents)
    assert status["titles"] == 1
    assert status["film_bytes"] == home.title.film_bytes
    assert status["replicas_there"] == status["replicas_wanted"] == wanted
    for name in ("bad_replicas", "under_replicated_extents", "unreadable_extents"):
        assert status[name] == 0
    assert status["scrub"] == {"now": None, "last": None}
    assert [disk["state"] for disk in status["disks"]] == ["ok"] * 4
    assert sum(disk["used_bytes"] for disk in status["disks"]) == 2 * home.title.film_bytes
    assert all(0 < disk["free_bytes"] <= disk["capacity_bytes"] for disk in status["disks"])
    (read,) = [disk for disk in status["disks"] if disk["mean_service_seconds"] is not None]
    assert read["mean_service_seconds"] > 0
    assert 0 <= read["hit_rate"] <= 1


async def test_what_is_bad_or_gone_is_counted_once(home):
    extent = home.title.extents[1]
    flip_byte(home.replica(1, 0), 5)
    with home.open() as store:
        assert not await store.check_replica(home.title, extent, extent.disks[0])
        store.catalog.note_bad(home.title.folder, 1, extent.disks[0], "rotten", 0.0)
        store.catalog.note_bad("gone", 1, extent.disks[0], "rotten", 0.0)
        store.detach_disk(extent.disks[1])
        status = await store_status(workshop_of(store))

    gone = count_on(home.title)[extent.disks[1]]
    assert status["bad_replicas"] == 1
    assert status["disks"][extent.disks[0]]["bad_replicas"] == 1
    assert status["replicas_there"] == status["replicas_wanted"] - 1 - gone
    assert status["under_replicated_extents"] == gone
    assert status["unreadable_extents"] == 1


async def test_a_disk_says_what_ails_it(home):
    with home.open() as store:
        workshop = workshop_of(store)
        workshop.conditions[2] = Condition("failing", "Input/output error", 3.0, 5, 7)
        disks = await disk_list(workshop)

    assert disks[2]["state"] == "failing"
    assert disks[2]["reason"] == "Input/output error"
    assert disks[2]["free_bytes"] == 5
    assert disks[0]["free_bytes"] is None
