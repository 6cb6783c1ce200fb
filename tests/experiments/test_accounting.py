"""The figures of a run follow from reports and counters by the formulas of docs/measures.md."""

import math
from pathlib import Path

import pytest

from experiments.accounting import (
    OperatorBytes,
    RunFacts,
    ViewerReport,
    failures,
    summarize,
    within_cap,
)
from experiments.bound import Behaviour
from experiments.decoder import DecodeResult
from experiments.errors import LabError

FILM = 1_000_000
EVENT = {
    "event": "report",
    "film_bytes": FILM,
    "start_seconds": 0.2,
    "stalls": 0,
    "stall_seconds": 0.0,
    "bytes_from_peers": 600_000,
    "bytes_from_seed": 100_000,
    "bytes_from_origin": 300_000,
    "bytes_wasted": 12_000,
    "bytes_uploaded": 590_000,
    "presence_seconds": 10.0,
    "arrived_at": 1000.0,
    "departed_at": 1010.0,
    "sha256": "ab" * 32,
    "complete": True,
    "choice_share": 0.9,
    "bytes_regretted": 500,
    "origin_payload_by_reason": {"urgent": 7_000, "startup": 1_000},
    "requested_pieces": 10,
    "something_else": [1, 2],
}
DECODE = DecodeResult(
    frames=250,
    audio_frames=470,
    expected_frames=250,
    errors=0,
    late_frames=0,
    halt_seconds=0.0,
    first_frame_seconds=0.1,
)


def report(**changes):
    return ViewerReport.from_event(EVENT | changes, viewer="viewer-1")


def run(reports, *, http=600_000, seed=200_000, tracker=0, upload_cap=100_000.0, decode=DECODE):
    return summarize(
        RunFacts(
            film_bytes=FILM,
            duration_seconds=10.0,
            film_sha256="ab" * 32,
            upload_cap=upload_cap,
            behaviour=Behaviour.STREAMING,
            reports=reports,
            operator=OperatorBytes(http=http, seed=seed, tracker=tracker),
            decode=decode,
        )
    )


def test_the_figures_of_a_run_worked_out_by_hand():
    """Two viewers, 5 s apart, of a film of 10 s and 1 MB; the operator sent 0.8 MB and a bit."""
    later = report(arrived_at=1005.0, departed_at=1015.0, start_seconds=0.4, requested_pieces=30)
    figures = run([report(), later], tracker=10_000)
    assert figures["viewers"] == 2
    assert figures["operator_bytes"] == 810_000
    assert figures["offload"] == pytest.approx(1 - 0.81 / 2)
    assert figures["copies"] == pytest.approx(0.81)
    assert figures["bound"] == pytest.approx(0.4975, abs=0.001)  # one copy, and one first piece
    assert figures["efficiency"] == pytest.approx(0.595 / 0.4975, abs=0.001)
    assert figures["waste"] == pytest.approx(24_000 / 1_200_000)
    assert figures["receipts_bytes"] == 800_000
    assert figures["regretted_bytes"] == 1_000
    assert figures["origin_bytes_by_reason"] == {"startup": 2_000, "urgent": 14_000}
    assert figures["receipts_agree"] is True
    assert (figures["start_seconds_p50"], figures["start_seconds_p95"]) == (0.2, 0.4)
    assert figures["choice_share"] == pytest.approx(0.9)
    assert (figures["frames_decoded"], figures["decode_errors"]) == (250, 0)
    assert (figures["verified"], figures["upload_cap_respected"]) == (True, True)
    assert failures(figures) == []


def test_percentiles_are_values_that_were_measured():
    """Nearest rank: of eight starts the 95th percentile is the slowest, not something between."""
    figures = run([report(start_seconds=n / 10) for n in range(1, 9)])
    assert (figures["start_seconds_p50"], figures["start_seconds_p95"]) == (0.4, 0.8)
    assert run([report(start_seconds=math.nan)])["start_seconds_p95"] is None


def test_choice_share_weighs_viewers_by_their_requests():
    figures = run(
        [
            report(choice_share=1.0, requested_pieces=30),
            report(choice_share=0.5, requested_pieces=10),
            report(choice_share=None, requested_pieces=0),
        ]
    )
    assert figures["choice_share"] == pytest.approx(35 / 40)
    assert run([report(choice_share=None, requested_pieces=0)])["choice_share"] is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stalls": 2, "stall_seconds": 1.5}, "2 stalls"),
        ({"sha256": "cd" * 32}, "not the source's"),
        ({"sha256": None}, "not the source's"),
        ({"complete": False}, "not the source's"),
        ({"bytes_uploaded": 2_000_000}, "more than its cap"),
    ],
)
def test_one_viewer_that_fails_fails_the_run(changes, words):
    found = failures(run([report(), report(**changes), report()]))
    assert len(found) == 1
    assert words in found[0]


def test_decoding_errors_fail_the_run_and_no_decoder_does_not():
    broken = DecodeResult(
        frames=240,
        audio_frames=0,
        expected_frames=250,
        errors=10,
        late_frames=0,
        halt_seconds=0.0,
        first_frame_seconds=0.1,
    )
    assert failures(run([report()], decode=broken)) == ["10 decoding errors"]
    figures = run([report()], decode=None)
    assert figures["decode_errors"] is None
    assert failures(figures) == []


@pytest.mark.parametrize(("uploaded", "respected"), [(1_085_536, True), (1_085_537, False)])
def test_the_cap_allows_two_percent_and_64_kib(uploaded, respected):
    """100 kB/s for 10 s: 1.02 MB and 65,536 bytes."""
    assert within_cap(report(bytes_uploaded=uploaded), 100_000.0) is respected


@pytest.mark.parametrize(
    ("served", "agree"),
    [(400_000, True), (393_000, True), (391_000, False), (420_000, True), (421_000, False)],
)
def test_receipts_agree_within_two_percent_and_what_was_wasted(served, agree):
    """Received 400 kB from the operator and threw 12 kB away, from whomever: 392 to 420.24 kB."""
    assert run([report()], http=served, seed=0)["receipts_agree"] is agree


def test_nothing_from_peers_is_no_waste_and_no_efficiency():
    figures = run([report(bytes_from_peers=0)], http=FILM, seed=0, tracker=100)
    assert figures["waste"] is None
    assert figures["efficiency"] is None
    assert figures["offload"] == pytest.approx(-0.0001)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sha256", 5),
        ("complete", "yes"),
        ("stalls", None),
        ("stalls", True),
        ("bytes_from_peers", 1.5),
        ("start_seconds", None),
    ],
)
def test_a_report_with_an_unusable_field_is_named(field, value):
    with pytest.raises(LabError, match=f"viewer-1 has no usable '{field}'"):
        report(**{field: value})


def test_a_missing_field_is_named_and_nobody_is_no_run():
    with pytest.raises(LabError, match="'arrived_at'"):
        ViewerReport.from_event({k: v for k, v in EVENT.items() if k != "arrived_at"}, viewer="v")
    with pytest.raises(LabError, match="nobody watched"):
        run([])


def test_every_figure_is_explained():
    explained = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
    assert [name for name in run([report()]) if f"`{name}`" not in explained] == []
