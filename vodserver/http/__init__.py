"""The HTTP side of the VoD server: titles, torrents, and films in ranges."""

from vodserver.http.app import HttpServer

__all__ = ["HttpServer"]
