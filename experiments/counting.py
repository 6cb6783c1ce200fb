"""What the operator's programs say of themselves: where they are, and what they sent."""

from collections.abc import Mapping
from typing import Any

import aiohttp

from experiments.accounting import OperatorBytes
from experiments.errors import LabError

__all__ = ["get_json", "operator_bytes", "url_of"]

_HTTP = aiohttp.ClientTimeout(total=10)


async def get_json(http: aiohttp.ClientSession, url: str) -> Any:
    """What a URL answers.

    Raises:
        LabError: nothing, or no JSON.
    """
    try:
        async with http.get(url, timeout=_HTTP, raise_for_status=True) as answer:
            return await answer.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise LabError(f"{url} gives no answer: {error or type(error).__name__}") from error


async def operator_bytes(
    http: aiohttp.ClientSession, tracker_url: str, server_url: str
) -> OperatorBytes:
    """What the operator's programs have sent so far, as they count it at their sockets.

    Raises:
        LabError: one of them does not answer.
    """
    tracker = await get_json(http, f"{tracker_url}/status")
    server = await get_json(http, f"{server_url}/status")
    return OperatorBytes(
        http=int(server["http_bytes_sent"]),
        seed=int(server["seed_bytes_sent"]),
        tracker=int(tracker["bytes_sent"]),
    )


def url_of(event: Mapping[str, Any] | None) -> str:
    """The `url` of an event that a program printed when it was ready.

    Raises:
        LabError: there is none.
    """
    if event is None or not isinstance(event.get("url"), str):
        raise LabError("a program is ready but does not say where: its event has no 'url'")
    return str(event["url"]).rstrip("/")
