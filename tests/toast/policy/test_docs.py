"""docs/policy.md cannot fall behind: every policy, setting, state and reason stands in it."""

import dataclasses
import re
from pathlib import Path

import pytest

from toast.common.timemap import TimeMap
from toast.policy import (
    BudgetSettings,
    EstimateSettings,
    GiveUpSettings,
    HandOverSettings,
    NeighbourSettings,
    Reason,
    State,
    horizon_names,
    neighbours_names,
    picker_names,
)
from toast.policy.buffer import buffer_names
from toast.policy.lots import LotSettings
from toast.policy.neighbours import CompanySettings

TEXT = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [
        *picker_names(),
        *horizon_names(),
        *neighbours_names(),
        *buffer_names(),
        *(reason.value for reason in Reason),
        *(state.value for state in State),
        *(key.decode() for key in TimeMap.constant(1, 1.0).to_bencodable()),
    ],
)
def test_every_name_is_explained(name):
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize(
    "settings",
    [
        *(HandOverSettings, NeighbourSettings, CompanySettings, LotSettings),
        *(EstimateSettings, GiveUpSettings, BudgetSettings),
    ],
)
def test_every_setting_stands_there_with_its_default(settings):
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+|none) \|", TEXT, re.MULTILINE))

    for field in dataclasses.fields(settings):
        told = rows[field.name]
        assert (None if told == "none" else float(told)) == field.default
