from tracker.shares import Shares

FILM = b"f" * 20


def member(number):
    return FILM, 0, number


def test_an_address_is_listed_from_half_of_its_share_on():
    shares = Shares(4)
    shares.add(7, member(1))
    assert not shares.crowded
    for number in (2, 3):
        shares.add(7, member(number))
    assert shares.crowded
    assert not shares.full(7)
    shares.add(7, member(4))
    assert list(shares.full(7)) == [member(2), member(3), member(4)]
    assert not shares.full(8)


def test_who_was_there_before_the_list_comes_onto_it_with_its_next_announce():
    shares = Shares(2)
    shares.seen(7, member(1))
    assert not shares.crowded
    for number in (1, 2):
        shares.add(7, member(number))
    shares.seen(7, member(1))
    assert set(shares.full(7)) == {member(1), member(2)}


def test_nothing_stays_of_an_address_that_has_left():
    shares = Shares(2)
    for number in (1, 2):
        shares.add(7, member(number))
    for number in (2, 1):
        shares.remove(7, member(number))
    assert not shares.crowded
    assert not shares.counts
