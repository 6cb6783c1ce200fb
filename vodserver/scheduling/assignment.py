"""Who gets which place at the least cost in all: sparse assignment by augmenting paths. Pure."""

from collections.abc import Sequence

__all__ = ["assign"]

_FAR = float("inf")


def assign(rows: Sequence[Sequence[tuple[int, float]]], columns: int) -> list[int]:
    """Give each row a column of its own so that the sum of the costs is least.

    Successive shortest augmenting paths with potentials (Kuhn 1955; Jonker and Volgenant 1987)
    over the edges that there are: a row that has e of them costs O(e) for each column that its
    path looks at.

    Args:
        rows: of each row the columns that it may have, with what they cost. Each has a column
            that no other has, so that there is always a solution.
        columns: how many there are.

    Returns:
        The column of each row.

    Raises:
        ValueError: a row can be given none.
    """
    owner = [-1] * columns
    given = [-1] * len(rows)
    price = [0.0] * columns
    offset = [0.0] * len(rows)
    for first in range(len(rows)):
        row, base, end = first, 0.0, -1
        away: dict[int, float] = {}  # of columns that were seen and not settled
        before: dict[int, int] = {}  # the row that leads to a column
        settled: list[tuple[int, float]] = []
        while True:
            level = base - offset[row]
            for column, cost in rows[row]:
                reach = level + cost - price[column]
                if reach < away.get(column, _FAR):
                    if column in before and column not in away:
                        continue  # settled
                    away[column] = reach
                    before[column] = row
            if not away:
                raise ValueError("a row has no column that it could be given")
            end = min(away, key=away.__getitem__)
            base = away.pop(end)
            row = owner[end]
            if row < 0:
                break
            settled.append((end, base))
        offset[first] += base
        for column, reach in settled:
            price[column] -= base - reach
            offset[owner[column]] += base - reach
        while end >= 0:
            row = before[end]
            owner[end] = row
            given[row], end = end, given[row]
    return given
