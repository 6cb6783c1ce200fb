"""Which client a worker hosts."""

from pathlib import Path

import aiohttp
import numpy as np
import pytest

from experiments.errors import ScenarioError
from experiments.real import client
from experiments.real.client import ClientContext, create_client
from experiments.swarms.scenario import Client, Scenario


@pytest.fixture
async def context(tmp_path):
    scenario = Scenario(client=Client.NAIVE, viewers=1)
    async with aiohttp.ClientSession() as http:
        yield ClientContext(
            scenario=scenario,
            viewer=scenario.crowd()[0],
            source="http://127.0.0.1:1/titles/1",
            listen_host="127.0.0.1",
            folder=Path(tmp_path),
            http=http,
            began_at=0.0,
            rng=np.random.default_rng(1),
        )


def test_every_client_has_a_factory():
    assert set(client._FACTORIES) == set(Client)


async def test_the_client_that_the_scenario_names_is_made(context, monkeypatch):
    # Anything that takes the context will do.
    monkeypatch.setattr(client, "_FACTORIES", {Client.NAIVE: ("builtins", "id")})
    assert create_client(context) == id(context)


async def test_a_client_that_is_not_there_is_refused_by_the_name_of_the_field(context, monkeypatch):
    monkeypatch.setattr(client, "_FACTORIES", {Client.NAIVE: ("no.such.module", "make")})
    with pytest.raises(ScenarioError, match=r"^client: naive cannot be run here"):
        create_client(context)
