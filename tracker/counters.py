"""What a tracker counts. One object for all its front ends."""

from dataclasses import dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Numbers since the start.

    Attributes:
        announces: announce requests, good and bad, over HTTP and UDP.
        scrapes: scrape requests, good and bad, over HTTP and UDP.
        failures: of these, refused with a reason.
        rate_refusals: of these, because one address asked too much.
        udp_connects: UDP connect requests.
        udp_announces: announces over UDP.
        udp_scrapes: scrapes over UDP.
        udp_unproved: UDP requests without a valid connection id.
        udp_ignored: datagrams that are no request at all.
        udp_unsent: UDP answers that the system did not take.
        udp_bytes_received: bytes of datagrams.
        udp_bytes_sent: bytes of datagrams.
        browser_messages: messages of browsers, good and bad.
        browser_bytes_sent: bytes sent to browsers.
    """

    announces: int = 0
    scrapes: int = 0
    failures: int = 0
    rate_refusals: int = 0
    udp_connects: int = 0
    udp_announces: int = 0
    udp_scrapes: int = 0
    udp_unproved: int = 0
    udp_ignored: int = 0
    udp_unsent: int = 0
    udp_bytes_received: int = 0
    udp_bytes_sent: int = 0
    browser_messages: int = 0
    browser_bytes_sent: int = 0
