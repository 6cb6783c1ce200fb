"""Reading a topology from a file that someone named."""

from pathlib import Path
from typing import Final

from netem.errors import TopologyError
from netem.topology import Topology
from netem.topology_text import topology_from_toml

__all__ = ["read_topology"]

_MAX_FILE_BYTES: Final = 1 << 20


def read_topology(file: Path) -> Topology:
    """The topology in a TOML file of at most 1 MiB.

    Raises:
        TopologyError: it cannot be read, or is not usable as written.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise TopologyError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TopologyError(f"{file} is not a text file in UTF-8") from error
    if len(data) > _MAX_FILE_BYTES:
        raise TopologyError(f"{file} is larger than 1 MiB: that is no topology")
    return topology_from_toml(text)
