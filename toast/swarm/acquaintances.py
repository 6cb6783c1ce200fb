"""Who is connected, who was asked to be, and who is called back after hanging up."""

from dataclasses import dataclass, field

from toast.swarm.facts import Address

__all__ = ["Acquaintances"]

_CALL_BACK_SECONDS = 2.0


@dataclass(slots=True)
class Acquaintances:
    """The peers of one film. Pure; `now` is set by whoever knows the time, in seconds.

    A neighbour that ejected pieces has to hang up to tell what it still has: it is called back at
    once. So is any other that hangs up, but no more than once in two seconds: one that does not
    want us costs little more than one that is not there.

    Attributes:
        now: the time.
        asked: whom we asked to connect to us, and who has not left since.
        present: who is connected.
    """

    now: float = 0.0
    asked: dict[Address, None] = field(default_factory=dict)
    present: set[Address] = field(default_factory=set)
    _departed: set[Address] = field(default_factory=set)
    _called_back: dict[Address, float] = field(default_factory=dict)

    def connected(self, address: Address) -> None:
        """Somebody is here."""
        self.present.add(address)

    def left(self, address: Address, *, hung_up: bool) -> bool:
        """Somebody has left, or could not be reached.

        Args:
            address: whose.
            hung_up: whether it ended the connection itself, without a reason.

        Returns:
            Whether to connect to it again at once.
        """
        was_here = address in self.present
        self.present.discard(address)
        latest = self._called_back.get(address, float("-inf"))
        again = hung_up and was_here and address in self.asked
        if again and self.now - latest >= _CALL_BACK_SECONDS:
            self._called_back[address] = self.now
            return True
        self.asked.pop(address, None)
        self._called_back.pop(address, None)
        self._departed.add(address)
        return False

    def joined_anew(self) -> tuple[Address, ...]:
        """All connections are gone; returns whom to ask again."""
        self.present.clear()
        return tuple(self.asked)

    def departed(self) -> frozenset[Address]:
        """Who has left, or could not be reached, since the last time that this was asked."""
        departed, self._departed = frozenset(self._departed), set()
        return departed
