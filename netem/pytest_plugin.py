"""Emulated networks in tests: pytest finds the fixture by itself where toast-vod is installed.

    async def test_play(emulated_network):
        network = await emulated_network(topology, seed=1)
        await network.run("viewer", ["curl", f"http://{network.address('server')}:8080/"])

It needs pytest-asyncio; without that there is no such fixture.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from netem.network import Network
    from netem.topology import Topology

__all__ = ["Up"]

Up: TypeAlias = "Callable[..., Awaitable[Network]]"
"""Brings a topology up, with the options of `netem.network.Network`."""

try:
    import pytest_asyncio
except ImportError:
    pass
else:

    @pytest_asyncio.fixture
    async def emulated_network() -> AsyncIterator[Up]:
        """Brings networks up that last as long as the test; where none can be, it is skipped."""
        # Not above: whoever has this installed and does not use it shall not wait for it.
        from netem.errors import NetemError, TopologyError  # noqa: PLC0415
        from netem.network import Network  # noqa: PLC0415

        async with contextlib.AsyncExitStack() as stack:

            async def up(topology: "Topology", **options: Any) -> "Network":
                try:
                    network = Network(topology, **options)
                except TopologyError:
                    raise  # that is no matter of the machine
                except NetemError as error:
                    pytest.skip(f"no network can be emulated here: {error}")
                return await stack.enter_async_context(network)

            yield up
