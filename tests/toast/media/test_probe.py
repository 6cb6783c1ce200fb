import io

import av
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.media import MediaError, probe

from .conftest import FILMS, FPS, SECONDS, write_film


class Recorder(io.FileIO):
    """A real file that remembers which of its bytes were read."""

    def __init__(self, path):
        super().__init__(path)
        self.reads = []

    def read(self, count=-1):
        at = self.tell()
        data = super().read(count)
        self.reads.append((at, at + len(data)))
        return data


def packets_of(path):
    """(start, end, film time at which it is shown, kind) of every packet: the full demux."""
    with av.open(str(path)) as film:
        origin = film.start_time / 1e6
        return [
            (p.pos, p.pos + p.size, float(p.pts * p.time_base) - origin, p.stream.type)
            for p in film.demux()
            if p.size and p.pos is not None and p.pos >= 0
        ]


def shown_keys(path):
    """Film time at which each key frame is shown: the full demux."""
    with av.open(str(path)) as film:
        origin = film.start_time / 1e6
        return np.array(
            [
                float(p.pts * p.time_base) - origin
                for p in film.demux(video=0)
                if p.size and p.is_keyframe
            ]
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", FILMS)
@pytest.mark.parametrize("as_object", [False, True])
def test_no_byte_of_any_packet_is_due_after_the_packet_is_shown(films, name, as_object):
    path = films[name]
    if as_object:
        with path.open("rb") as file:
            timemap = probe(file).timemap
    else:
        timemap = probe(path).timemap
    if timemap.source == "constant":
        assert as_object
        assert name in ("fragmented.mp4", "film.avi", "film.ts")
        return

    late = [
        (start, shown)
        for start, end, shown, _ in packets_of(path)
        for offset in (start, (start + end) // 2, end - 1)
        if timemap.time_of(offset) > max(0, shown) + 1e-6
    ]
    assert late == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FILMS)
def test_a_picture_can_begin_at_every_key_frame_that_is_named(films, name):
    real = shown_keys(films[name])
    keys = probe(films[name]).timemap.keys
    assert keys.size == real.size > 1
    assert np.abs(keys - real).max() < 1e-3


B_FRAMES = "bframes=3:b-adapt=0:scenecut=0"
MP4S = {
    "plain": {},
    "open groups": {"x264": f"{B_FRAMES}:open-gop=1"},
    "nothing out of order": {"x264": "bframes=0"},
    "shown before decoded": {"options": {"movflags": "negative_cts_offsets"}},
    "long groups": {"gop": 3 * FPS, "seconds": 8},
    "mute": {"acodec": None},
}


@pytest.fixture(scope="module", params=MP4S)
def mp4(request, tmp_path_factory):
    """An MP4, mostly with B-frames: decoded in another order than shown."""
    path = tmp_path_factory.mktemp("mp4") / "film.mp4"
    return write_film(path, **({"gop": FPS // 2, "x264": B_FRAMES} | MP4S[request.param]))


@pytest.mark.slow
def test_resuming_an_mp4_begins_with_the_key_frame_that_ffmpeg_seeks_to(mp4):
    info = probe(mp4)
    timemap = info.timemap
    with av.open(str(mp4)) as film:
        video = film.streams.video[0]

        @settings(max_examples=200, deadline=None, phases=(Phase.generate,))
        @given(st.floats(0, info.duration))
        def seeks_alike(at):
            film.seek(int(at / video.time_base), stream=video, backward=True)
            key = next(packet for packet in film.demux(video) if packet.is_keyframe)
            shown, until = timemap.key_before(at)
            assert until <= shown <= at
            place = int(np.searchsorted(timemap.keys, at, side="right")) - 1
            if timemap.key_cells[place] != key.pos // timemap.cell_bytes:
                # Times in ticks are rounded down: at the very edge either is right.
                assert np.abs(timemap.keys - at).min() < 1e-3

        seeks_alike()


@pytest.mark.slow
def test_the_key_frames_of_an_mp4_without_edit_list_are_shown_when_it_says(tmp_path):
    """FFmpeg seeks in it by times of decoding: it may begin with a key frame yet to be shown."""
    path = write_film(tmp_path / "film.mp4", x264=B_FRAMES, options={"use_editlist": "0"})

    keys = probe(path).timemap.keys
    assert np.abs(keys - shown_keys(path)).max() < 1e-3
    assert keys[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in FILMS if n != "film.ts"])
def test_no_cell_is_due_long_before_a_packet_of_it_is_shown(films, name):
    """The map is not merely careful: a map of zeros would never be late either."""
    path = films[name]
    timemap = probe(path).timemap
    inside = [False] * timemap.due.size
    slowest = [0.0] * timemap.due.size
    for start, end, shown, _ in packets_of(path):
        for cell in range(start // timemap.cell_bytes, (end - 1) // timemap.cell_bytes + 1):
            inside[cell] = True
            slowest[cell] = max(slowest[cell], shown)
    for start, end in timemap.startup:
        for cell in range(start // timemap.cell_bytes, (end - 1) // timemap.cell_bytes + 1):
            inside[cell] = False

    # A cell of 16 KiB of these films lasts a third of a second, interleaving adds up to a second.
    early = [t - d for t, d, yes in zip(slowest, timemap.due, inside, strict=True) if yes]
    assert max(early) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "container", "video", "audio"),
    [
        ("front.mp4", "mp4", "h264", "aac"),
        ("end.mp4", "mp4", "h264", "aac"),
        ("mute.mp4", "mp4", "h264", None),
        ("film.mkv", "matroska", "h264", "aac"),
        ("film.webm", "matroska", "vp8", "opus"),
        ("film.avi", "avi", "h264", "aac"),
        ("film.ts", "mpegts", "h264", "aac"),
    ],
)
def test_what_a_film_is(films, name, container, video, audio):
    info = probe(str(films[name]))

    assert (info.container, info.video_codec, info.audio_codec) == (container, video, audio)
    assert (info.width, info.height) == (160, 96)
    assert info.frames == SECONDS * FPS
    assert SECONDS <= info.duration < SECONDS + 0.15
    assert info.timemap.source == container
    assert info.timemap.film_bytes == films[name].stat().st_size


class TestIndex:
    @pytest.mark.parametrize(("name", "where"), [("front.mp4", 0), ("end.mp4", -1)])
    def test_the_index_of_mp4_is_its_moov_box(self, films, name, where):
        data = films[name].read_bytes()
        moov = data.index(b"moov") - 4
        length = int.from_bytes(data[moov : moov + 4], "big")
        timemap = probe(films[name]).timemap

        start, end = timemap.index[where]
        assert start <= moov
        assert moov + length <= end
        assert sum(e - s for s, e in timemap.index) < length + 64

    def test_the_index_of_matroska_is_all_but_its_clusters(self, films):
        data = films["film.mkv"].read_bytes()
        timemap = probe(films["film.mkv"]).timemap
        cues = data.rindex(b"\x1c\x53\xbb\x6b")

        assert timemap.index[0][0] == 0
        assert any(s <= cues < e for s, e in timemap.index)
        assert sum(e - s for s, e in timemap.index) < 2000

    @pytest.mark.parametrize("name", ["front.mp4", "end.mp4", "film.mkv", "film.webm"])
    def test_startup_is_the_index_and_the_first_picture(self, films, name):
        timemap = probe(films[name]).timemap
        first = next(p for p in packets_of(films[name]) if p[3] == "video")

        def inside(offset):
            return any(s <= offset < e for s, e in timemap.startup)

        assert inside(first[0])
        assert inside(first[1] - 1)
        assert all(inside(s) and inside(e - 1) for s, e in timemap.index)
        assert sum(e - s for s, e in timemap.startup) < 0.1 * timemap.film_bytes

    def test_pieces_of_an_index_at_the_end_are_due_at_once(self, films):
        timemap = probe(films["end.mp4"]).timemap
        due = timemap.due_of_pieces(Geometry(timemap.film_bytes, 16384))

        assert due[0] == due[-1] == 0
        assert due[-3] > 2


class TestArrivingFilms:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["front.mp4", "end.mp4", "film.mkv", "film.webm"])
    def test_only_header_and_index_are_read_of_a_file_object(self, films, name, tmp_path):
        long = tmp_path / name
        write_film(long, **FILMS[name] | {"seconds": 16})
        with Recorder(long) as file:
            timemap = probe(file).timemap
            touched = {at // 65536 for s, e in file.reads for at in range(s, e, 1024)}

        assert timemap.source != "constant"
        assert len(touched) <= 4
        assert timemap.film_bytes > 10 * 65536

    @pytest.mark.slow
    def test_a_film_of_one_key_frame_need_not_be_here_whole_before_it_starts(self, tmp_path):
        """Its Matroska index has one entry; the pictures after it are still due one by one."""
        path = write_film(tmp_path / "one.mkv", gop=10_000, seconds=16)
        with path.open("rb") as file:
            timemap = probe(file).timemap
        late = [
            start
            for start, end, shown, _ in packets_of(path)
            if timemap.time_of(end - 1) > max(0, shown)
        ]

        assert timemap.source == "matroska"
        assert timemap.byte_of(0.0) < timemap.film_bytes / 2
        assert timemap.due[-2] > 9
        assert late == []

    def test_file_objects_stay_open(self, films):
        with films["front.mp4"].open("rb") as file:
            probe(file)

            assert not file.closed

    def test_an_error_of_the_file_object_reaches_its_owner(self, films):
        class CancelledError(Exception):
            pass

        class Breaking(io.FileIO):
            def read(self, count=-1):
                if self.tell() > 0 or count > 16:
                    raise CancelledError
                return super().read(count)

        with Breaking(films["front.mp4"]) as file, pytest.raises(CancelledError):
            probe(file)

    def test_without_an_index_a_file_object_gets_a_constant_rate(self, films):
        data = films["film.ts"].read_bytes()

        info = probe(io.BytesIO(data))

        constant = TimeMap.constant(len(data), info.duration)
        assert info.timemap.source == "constant"
        assert info.timemap.due.tolist() == constant.due.tolist()

    def test_matroska_without_cues_gets_a_constant_rate(self, films):
        data = bytearray(films["film.mkv"].read_bytes())
        cues = data.rindex(b"\x1c\x53\xbb\x6b")
        data[cues : cues + 4] = b"\x12\x54\xc3\x67"  # call it Tags

        info = probe(io.BytesIO(bytes(data)))

        assert info.timemap.source == "constant"
        assert info.timemap.index[0][0] == 0


def mutilated(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    return path


class TestOddFiles:
    """Not as the book says, and still films."""

    def test_a_title_that_is_no_utf_8(self, films, tmp_path):
        data = films["film.mkv"].read_bytes()
        spoiled = data.replace(b"Lavf", b"L\xe4vf")
        assert spoiled != data

        assert probe(mutilated(tmp_path, "latin.mkv", spoiled)).frames == SECONDS * FPS

    def test_a_track_that_appears_on_the_way(self, films, tmp_path):
        silent = write_film(tmp_path / "silent.ts", acodec=None, seconds=1)
        data = silent.read_bytes() * 8 + films["film.ts"].read_bytes()
        info = probe(mutilated(tmp_path, "joined.ts", data))

        assert info.video_codec == "h264"
        assert info.timemap.source == "mpegts"
        assert info.timemap.film_bytes == len(data)


class TestBadFiles:
    def test_a_recording_that_never_got_its_media_data(self, films, tmp_path):
        """Its header promises a film; reading it from end to end finds no packet."""
        data = films["film.mkv"].read_bytes()
        first = data.index(b"\x1f\x43\xb6\x75")
        path = mutilated(tmp_path, "header.mkv", data[: first + 4] + b"\x80" + bytes(200))

        with pytest.raises(MediaError, match=r"header.mkv is cut short"):
            probe(path)

    @pytest.mark.parametrize("as_object", [False, True])
    @pytest.mark.parametrize(
        ("source", "change", "said"),
        [
            ("front.mp4", lambda d: b"", "is empty"),
            ("front.mp4", lambda d: b"Shopping: bread, milk.\n" * 20, "not a film"),
            ("front.mp4", lambda d: d[:-1], "is cut short: its mdat box ends"),
            ("front.mp4", lambda d: d[:100], "is cut short: its moov box ends"),
            ("front.mp4", lambda d: d[:4], "not a film"),
            ("end.mp4", lambda d: d[: len(d) // 2], "is cut short: its mdat box ends"),
            ("end.mp4", lambda d: d[: d.index(b"moov") - 4], "has no index"),
            ("end.mp4", lambda d: d[: d.index(b"moov") - 2], "is cut short: its last box"),
            ("fragmented.mp4", lambda d: d[: d.index(b"moof") - 4], "does not say how long it is"),
            ("film.mkv", lambda d: d[: len(d) // 2], "is cut short: it should end at byte"),
            ("film.mkv", lambda d: d[:20], "is cut short"),
            ("film.avi", lambda d: d[:-1], "is cut short: it should end at byte"),
            ("film.mkv", lambda d: b"\x1a\x45\xdf\xa3" + b"\xff" * 400, "not a film"),
        ],
    )
    def test_one_clear_line(self, films, tmp_path, as_object, source, change, said):  # noqa: PLR0917 - pytest passes them by name
        path = mutilated(tmp_path, f"bad_{source}", change(films[source].read_bytes()))

        with path.open("rb") as file, pytest.raises(MediaError, match=said) as caught:
            probe(file if as_object else path)
        assert "\n" not in str(caught.value)
        assert str(caught.value).startswith(path.name)

    def test_an_index_that_points_past_the_end(self, films, tmp_path):
        """The last box may run "to the end of the file": only the index shows that it is cut."""
        data = bytearray(films["front.mp4"].read_bytes())
        mdat = data.index(b"mdat") - 4
        data[mdat : mdat + 4] = bytes(4)
        path = mutilated(tmp_path, "open.mp4", bytes(data[: len(data) // 2]))

        with pytest.raises(MediaError, match=r"open.mp4 is cut short: its index points past"):
            probe(path)

    def test_sound_alone_is_no_film(self, tmp_path):
        path = tmp_path / "song.mp4"
        with av.open(str(path), "w") as song:
            track = song.add_stream("aac", rate=48000)
            for i in range(20):
                frame = av.AudioFrame.from_ndarray(
                    np.zeros((1, 1024), np.float32), format="fltp", layout="mono"
                )
                frame.sample_rate, frame.pts = 48000, 1024 * i
                song.mux(track.encode(frame))
            song.mux(track.encode(None))

        with pytest.raises(MediaError, match=r"song.mp4 has no video track"):
            probe(path)

    def test_a_play_list_cannot_make_us_open_other_files(self, films, tmp_path):
        """A stranger's "film" may be a list of local files or addresses (HLS)."""
        path = tmp_path / "film.mp4"
        path.write_text(
            f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:4,\n{films['film.ts']}\n#EXT-X-ENDLIST\n"
        )

        with pytest.raises(MediaError, match="not a film"):
            probe(path)

    def test_a_video_format_that_ffmpeg_does_not_know(self, films, tmp_path):
        data = films["front.mp4"].read_bytes().replace(b"avc1", b"zzzz")

        with pytest.raises(MediaError, match="has a video track in a format that is not known"):
            probe(mutilated(tmp_path, "strange.mp4", data))

    def test_a_sound_format_that_ffmpeg_does_not_know_is_no_reason_to_refuse(self, films, tmp_path):
        data = films["film.mkv"].read_bytes().replace(b"A_AAC", b"A_ZZZ")

        assert probe(mutilated(tmp_path, "strange.mkv", data)).audio_codec is None

    def test_a_path_that_is_not_there(self, tmp_path):
        with pytest.raises(MediaError, match=r"none.mp4 cannot be read: No such file"):
            probe(tmp_path / "none.mp4")
        with pytest.raises(MediaError, match="cannot be read: Is a directory"):
            probe(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["front.mp4", "end.mp4", "fragmented.mp4", "film.mkv", "film.avi"])
def test_spoiled_bytes_end_in_a_film_or_in_one_line(films, tmp_path, name):
    """A stranger's file, or a bad disk: header and index are where it hurts."""
    whole = films[name].read_bytes()

    @settings(max_examples=40, deadline=None, derandomize=True, phases=(Phase.generate,))
    @given(st.lists(st.tuples(st.integers(-4000, 4000), st.integers(0, 255)), max_size=20))
    def check(changes):
        data = bytearray(whole)
        for at, value in changes:
            data[at] = value
        for film in (io.BytesIO(bytes(data)), mutilated(tmp_path, name, bytes(data))):
            try:
                info = probe(film)
            except MediaError as error:
                refusals.append(str(error))
            else:
                films_read.append(info.timemap.film_bytes)

    refusals, films_read = [], []
    check()
    assert set(films_read) == {len(whole)}
    assert all("\n" not in line for line in refusals)
