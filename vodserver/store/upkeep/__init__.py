"""What keeps a store whole while it serves: health of its disks, scrub, repair, moves."""

from vodserver.store.upkeep.keeper import Keeper
from vodserver.store.upkeep.settings import UpkeepSettings
from vodserver.store.upkeep.workshop import Workshop, workshop_of

__all__ = ["Keeper", "UpkeepSettings", "Workshop", "workshop_of"]
