"""The OpenAPI document, and the same as a page that asks nobody else for anything."""

import base64
import hashlib
import re
from html import escape
from typing import Any, Final

from toast.daemon.operations import OPERATIONS, SCHEMAS, Operation

__all__ = ["DOCS_HEADERS", "make_docs_page", "make_openapi"]

_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;"
    "margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #8886}"
    "code{font:14px/1.4 ui-monospace,monospace}h2{margin-top:2rem}"
)
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
DOCS_HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PARAMETER: Final = re.compile(r"\{(\w+)\}")


def make_openapi(version: str) -> dict[str, Any]:
    """The document, by OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.full_path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toast",
            "version": version,
            "description": "Films that come from other viewers, and from the server only what they"
            " cannot bring in time.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "STATE/token"}
            },
        },
        "security": [{"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": _responses(operation),
    }
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(operation.path)
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in (operation.query or {}).items()
    ]
    if parameters:
        made["parameters"] = parameters
    if operation.body is not None:
        content: dict[str, Any] = {"application/json": {"schema": _ref(operation.body)}}
        if operation.torrent:
            content["application/x-bittorrent"] = {}
        made["requestBody"] = {"required": True, "content": content}
    if operation.public:
        made["security"] = []
    return made


def _responses(operation: Operation) -> dict[str, Any]:
    good: dict[str, Any] = {"description": operation.summary}
    if operation.answer is not None:
        good["content"] = {operation.kind: {"schema": _ref(operation.answer)}}
    elif operation.status != 204:
        good["content"] = {operation.kind: {}}
    responses = {str(operation.status): good}
    refused = () if operation.public else (401,)
    for status in sorted({*operation.errors, *refused, 403}):
        content = {"application/json": {"schema": _ref("Error")}}
        responses[str(status)] = {"description": "refused", "content": content}
    return responses


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def make_docs_page(version: str) -> str:
    """The API as one page of HTML."""
    rows = "".join(
        f"<tr><td><code>{operation.method} {escape(operation.full_path)}</code></td>"
        f"<td>{escape(operation.summary)}</td><td>{_names(operation)}</td></tr>"
        for operation in OPERATIONS
    )
    shapes = "".join(
        f'<h2 id="{name}">{name}</h2><table>{_properties(schema)}</table>'
        for name, schema in SCHEMAS.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Toast's API</title><style>{_STYLE}</style></head><body>"
        f"<h1>Toast's API</h1><p>Version {escape(version)}. Every request needs the token, as"
        " <code>Authorization: Bearer TOKEN</code>; it is in the file <code>token</code> of the"
        ' state folder. <a href="openapi.json">The same by OpenAPI.</a></p>'
        "<table><tr><th>request</th><th>what it does</th><th>body &rarr; answer</th></tr>"
        f"{rows}</table>{shapes}</body></html>"
    )


def _names(operation: Operation) -> str:
    def link(name: str | None) -> str:
        return "" if name is None else f'<a href="#{name}">{name}</a>'

    return f"{link(operation.body)} &rarr; {link(operation.answer) or operation.status}"


def _properties(schema: Any) -> str:
    return "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_kind(shape))}</td>"
        f"<td>{escape(shape.get('description', ''))}</td></tr>"
        for name, shape in schema["properties"].items()
    )


def _kind(shape: Any) -> str:
    if "enum" in shape:
        return " | ".join(shape["enum"])
    kind = shape.get("type", "object")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
