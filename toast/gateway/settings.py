"""What the gateway is set to."""

from dataclasses import dataclass

__all__ = ["GatewaySettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """How much the gateway gives to whom."""

    max_connections: int = 32
    """Connections at a time, idle ones included; further ones are closed at once. A player opens
    two to four, and a browser six."""
    write_bytes: int = 256 * 1024
    """Most that is handed to a connection before waiting until the player has taken it."""
    keep_alive_seconds: float = 30.0
    """How long an idle connection stays open."""
    closing_seconds: float = 0.5
    """How long `close` lets running answers finish."""
