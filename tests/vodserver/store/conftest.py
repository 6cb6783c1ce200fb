"""An empty store for what goes in, and disks that wait for the test."""

import pytest

from tests.vodserver.conftest import make_empty
from tests.vodserver.store.gated import Rig
from vodserver.store.catalog import Catalog, DiskRow


@pytest.fixture
def path(tmp_path):
    return tmp_path / "catalog.sqlite"


@pytest.fixture
def catalog(path, tmp_path):
    disks = [DiskRow(0, "d0", tmp_path / "a"), DiskRow(1, "d1", tmp_path / "b")]
    made = Catalog.create(path, "store-id", "rda", disks)
    yield made
    made.close()


@pytest.fixture
def empty(tmp_path):
    return make_empty(tmp_path)


@pytest.fixture
def make(tmp_path):
    """Make disk arrays over gated disks: `rig = make(disks=2)`."""
    made = []

    def rig(**options):
        made.append(Rig(tmp_path, **options))
        return made[-1]

    yield rig
    for each in made:
        each.close()
