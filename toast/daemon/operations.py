"""The API as data: its operations, and the shapes of what goes in and out (JSON Schema).

The application's routes and the OpenAPI document are both made from this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["OPERATIONS", "SCHEMAS", "Operation"]

Schema = Mapping[str, Any]

_TEXT: Final = {"type": "string"}
_BOOLEAN: Final = {"type": "boolean"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "number"}
_ID: Final = {"type": "string", "pattern": "^[0-9a-f]{40}$", "description": "info-hash"}
_BEHAVIOUR: Final = {"type": "string", "enum": ["download-only", "streaming", "seeding"]}
_STATES: Final = [
    *("queued", "checking", "waiting", "downloading", "watching"),
    *("seeding", "paused", "complete", "error"),
]


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _about(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _object(**properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _some_of(**properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


SCHEMAS: Final[Mapping[str, Schema]] = {
    "Error": _object(error=_about(_TEXT, "one line that says what to do")),
    "Film": _object(
        id=_ID,
        name=_about(_TEXT, "file name"),
        title=_TEXT,
        size_bytes=_COUNT,
        duration_seconds=_or_null(_NUMBER),
        state={"type": "string", "enum": _STATES},
        error=_or_null(_TEXT),
        position_seconds=_about(_NUMBER, "where to go on watching"),
        watched=_about(_BOOLEAN, "whether a viewing came to the end, or nearly"),
        behaviour=_BEHAVIOUR,
        priority=_about({"type": "integer"}, "higher ones are downloaded first"),
        added_at=_about(_NUMBER, "Unix time"),
        pieces=_COUNT,
        pieces_have=_COUNT,
        buffer_seconds=_about(_NUMBER, "film that is here ahead of the playhead"),
        down_rate=_about(_NUMBER, "bytes/second from peers"),
        up_rate=_about(_NUMBER, "bytes/second to peers"),
        neighbours=_COUNT,
        readers=_about(_COUNT, "players' connections"),
        stalls=_COUNT,
        bytes_from_peers=_COUNT,
        bytes_from_seed=_COUNT,
        bytes_from_origin=_COUNT,
        uploaded_bytes=_COUNT,
        offload=_or_null(_about(_NUMBER, "share of what came that other viewers sent")),
        video_codec=_or_null(_TEXT),
        audio_codec=_or_null(_TEXT),
        width=_or_null(_COUNT),
        height=_or_null(_COUNT),
        ejected_pieces=_COUNT,
        content_url=_TEXT,
        playlist_url=_TEXT,
        poster_url=_or_null(_TEXT),
        subtitles={
            "type": "array",
            "items": _object(label=_TEXT, language=_or_null(_TEXT), url=_TEXT),
        },
    ),
    "Films": _object(films={"type": "array", "items": {"$ref": "#/components/schemas/Film"}}),
    "NewFilm": {
        **_some_of(
            source=_about(
                _TEXT, "URL of a title or a .torrent, magnet link, or path of a .torrent"
            ),
            behaviour=_BEHAVIOUR,
            mode={"type": "string", "enum": ["watch", "download", "queue"]},
        ),
        "required": ["source"],
    },
    "FilmChanges": _some_of(
        paused=_BOOLEAN,
        behaviour=_BEHAVIOUR,
        priority={"type": "integer"},
        position_seconds=_NUMBER,
    ),
    "Position": {
        **_some_of(position_seconds=_NUMBER, paused=_BOOLEAN, rate=_NUMBER),
        "required": ["position_seconds"],
    },
    "Pieces": _object(
        pieces=_COUNT,
        sources=_about(
            _TEXT,
            "base64 of one byte for each piece: 0 missing, 1 from viewers, 2 from the operator's"
            " seed, 3 from the VoD server, 4 ejected, 5 found on the disk",
        ),
    ),
    "Status": _object(
        version=_TEXT,
        uptime_seconds=_NUMBER,
        films=_COUNT,
        down_rate=_NUMBER,
        up_rate=_NUMBER,
        uploaded_bytes=_about(_COUNT, "today"),
        upload_quota_bytes=_or_null(_COUNT),
        disk=_object(used_bytes=_COUNT, quota_bytes=_or_null(_COUNT), free_bytes=_COUNT),
        origin_bytes_today=_about(_COUNT, "asked of VoD servers in the last 24 hours"),
        origin_quota_bytes=_or_null(_COUNT),
        schedule=_object(
            text=_TEXT,
            uploads=_BOOLEAN,
            downloads=_BOOLEAN,
            upload_rate=_or_null(_NUMBER),
            download_rate=_or_null(_NUMBER),
            next_change=_or_null(_about(_NUMBER, "Unix time")),
        ),
        peers_port=_COUNT,
        notices={"type": "array", "items": _TEXT},
    ),
    "Settings": _object(
        most_active=_COUNT,
        behaviour=_BEHAVIOUR,
        seed_ratio=_or_null(_NUMBER),
        seed_seconds=_or_null(_NUMBER),
        upload_rate=_or_null(_NUMBER),
        download_rate=_or_null(_NUMBER),
        upload_day_bytes=_or_null(_COUNT),
        origin_day_bytes=_or_null(_COUNT),
        origin_rate=_or_null(_NUMBER),
        disk_bytes=_or_null(_COUNT),
        eject_watched=_BOOLEAN,
        schedule=_TEXT,
    ),
}
"""By name. Of settings any part may be changed; what is left out stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that can be asked.

    Attributes:
        name: of the handler, and `operationId`.
        method: of HTTP.
        path: below `prefix`.
        summary: one line.
        answer: name of the schema of the answer; None: none, or not JSON.
        kind: media type of the answer.
        status: of the answer.
        body: name of the schema of the request's body; None: it has none.
        torrent: whether the body may be a .torrent instead.
        query: what may stand in the query, by name: its meaning.
        errors: other statuses that may come, each with an `Error`.
        public: whether it needs no token.
        top: whether it stands outside `/api/v1`.
    """

    name: str
    method: str
    path: str
    summary: str
    answer: str | None = None
    kind: str = "application/json"
    status: int = 200
    body: str | None = None
    torrent: bool = False
    query: Mapping[str, str] | None = None
    errors: tuple[int, ...] = ()
    public: bool = False
    top: bool = False

    @property
    def full_path(self) -> str:
        """The path as a request has it."""
        return self.path if self.top else f"/api/v1{self.path}"


OPERATIONS: Final = (
    Operation(
        name="get_status", method="GET", path="/status", answer="Status", summary="How it goes"
    ),
    Operation(name="list_films", method="GET", path="/films", answer="Films", summary="All films"),
    Operation(
        name="add_film",
        method="POST",
        path="/films",
        body="NewFilm",
        torrent=True,
        query={"mode": "as in the body, with a .torrent", "behaviour": "the same"},
        answer="Film",
        status=201,
        errors=(400, 409, 413, 415, 422, 507),
        summary="Take a film in; it is on the disk when this answers",
    ),
    Operation(
        name="get_film",
        method="GET",
        path="/films/{id}",
        answer="Film",
        errors=(404,),
        summary="One film",
    ),
    Operation(
        name="change_film",
        method="PATCH",
        path="/films/{id}",
        body="FilmChanges",
        answer="Film",
        errors=(400, 404, 413, 415),
        summary="Pause or resume a film, or change its behaviour, priority or position",
    ),
    Operation(
        name="remove_film",
        method="DELETE",
        path="/films/{id}",
        query={"data": "1: delete its files too"},
        status=204,
        errors=(404,),
        summary="Let a film go",
    ),
    Operation(
        name="report_position",
        method="POST",
        path="/films/{id}/position",
        body="Position",
        status=204,
        errors=(400, 404, 413, 415),
        summary="Where a player is; about once a second, and whenever that changes",
    ),
    Operation(
        name="get_pieces",
        method="GET",
        path="/films/{id}/pieces",
        answer="Pieces",
        errors=(404,),
        summary="Where each piece came from",
    ),
    Operation(
        name="get_settings",
        method="GET",
        path="/settings",
        answer="Settings",
        summary="The rules of the house",
    ),
    Operation(
        name="change_settings",
        method="PATCH",
        path="/settings",
        body="Settings",
        answer="Settings",
        errors=(400, 413, 415),
        summary="Change some of the rules; they are remembered",
    ),
    Operation(
        name="get_events",
        method="GET",
        path="/events",
        kind="text/event-stream",
        errors=(409,),
        summary="What happens: events `films`, `pieces`, `removed` and `status`",
    ),
    Operation(
        name="get_openapi", method="GET", path="/openapi.json", summary="This API, by OpenAPI 3.1"
    ),
    Operation(
        name="get_docs", method="GET", path="/docs", kind="text/html", summary="The same, to read"
    ),
    Operation(
        name="get_metrics",
        method="GET",
        path="/metrics",
        kind="text/plain",
        top=True,
        public=True,
        summary="Counters and gauges for Prometheus; from other machines with the token",
    ),
    Operation(
        name="get_health",
        method="GET",
        path="/healthz",
        kind="text/plain",
        top=True,
        public=True,
        errors=(503,),
        summary="Whether the daemon does its work",
    ),
)
