"""The operator's seed: the films of a store in the swarm, straight from their extents."""

from vodserver.seed.seed import Seed
from vodserver.seed.settings import SeedSettings
from vodserver.seed.swarm import PEER_ID_PREFIX

__all__ = ["PEER_ID_PREFIX", "Seed", "SeedSettings"]
