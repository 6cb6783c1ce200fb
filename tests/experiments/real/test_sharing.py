"""A copy that is right gives way to a link."""

import hashlib

from experiments.real.sharing import is_right, put_link


def test_a_copy_is_right_to_the_byte_or_not(tmp_path):
    path = tmp_path / "film"
    path.write_bytes(b"all of it")
    digest = hashlib.sha256(b"all of it").hexdigest()
    assert is_right(path, digest)
    path.write_bytes(b"all of if")
    assert not is_right(path, digest)


def test_a_link_takes_the_place_of_a_copy_and_the_name_stays(tmp_path):
    film, own = tmp_path / "film.bin", tmp_path / "own"
    film.write_bytes(b"the film")
    own.write_bytes(b"the copy")
    put_link(own, film)

    assert own.samefile(film)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film.bin", "own"]
