"""An empty store for what goes in, and disks that wait for the test."""

import pytest

from tests.vodserver.conftest import make_empty
from tests.vodserver.store.gated import Rig


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
