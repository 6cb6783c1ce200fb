"""docs/tracker.md cannot lie about names and defaults."""

import asyncio
import re
from dataclasses import fields
from pathlib import Path

import pytest

from tracker.server import serve_tracker
from tracker.settings import TrackerSettings
from tracker.siblings import SiblingPlace

PAGE = (Path(__file__).parents[2] / "docs/tracker.md").read_text()


@pytest.mark.parametrize("setting", fields(TrackerSettings), ids=lambda field: field.name)
def test_every_setting_stands_there_with_its_default(setting):
    row = re.search(rf"^\| `{setting.name}` \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert row is not None
    default = setting.default
    if isinstance(default, bool):
        assert row[1] == ("yes" if default else "no")
    else:
        assert row[1] == (default if isinstance(default, str) else f"{default:.10g}")


async def test_what_is_counted_where_there_are_others_stands_there(tmp_path):
    place = SiblingPlace(tmp_path, 0, 2, b"s" * 32)
    async with serve_tracker(TrackerSettings(port=0), seed=1, place=place) as server:
        told = server.statistics()
    for name in (*told, "store_up"):
        assert f"`{name}`" in PAGE


async def test_every_counter_and_route_stands_there():
    async with serve_tracker(TrackerSettings(port=0), seed=1) as server:
        for name in server.statistics():
            assert f"`{name}`" in PAGE
        for route in server.answers.routes:
            assert f"`{route.decode()}`" in PAGE
    assert asyncio.all_tasks() == {asyncio.current_task()}
