"""The OpenAPI 3.1 description of the API, from the documents themselves."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from news_platform.server.documents import (
    API_PREFIX,
    ArticleDocument,
    DomainDocument,
    ErrorDocument,
    ExplainDocument,
    PoliciesDocument,
    SearchDocument,
    StatusDocument,
)
from news_platform.server.search_view import MAX_PAGE

_REFERENCES = "#/components/schemas/{model}"
_DAY = {"type": "string", "format": "date"}
_TEXT = {"type": "string"}
_CURSOR = ("cursor", _TEXT, "`next_cursor` of the answer before")
_LIMIT = ("limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}, "rows of a page")
_TEXTS = {"type": "array", "items": _TEXT}
Parameter = tuple[str, Mapping[str, Any], str]

PATHS: Mapping[str, tuple[str, type[BaseModel], Sequence[Parameter]]] = {
    "search": (
        "Search the text of all articles.",
        SearchDocument,
        (
            ("q", _TEXT, 'words, "phrases", AND, OR, NOT, (brackets), field:word'),
            ("from", _DAY, "first day; by default the newest days are searched"),
            ("to", _DAY, "last day"),
            ("language", _TEXTS, "only these languages"),
            ("domain", _TEXTS, "only these domains"),
            ("sort", {"enum": ["score", "date"]}, "order of the hits"),
            ("one_per_cluster", {"type": "boolean"}, "leave out near-identical articles"),
            _LIMIT,
            _CURSOR,
        ),
    ),
    "articles/{url_hash}": (
        "Return an article.",
        ArticleDocument,
        (("day", _DAY, "look only at the captures of this day, which is faster"),),
    ),
    "domains/{domain}": ("Return what is known about a domain.", DomainDocument, ()),
    "explain": (
        "Say where a URL, a domain or a feed is, and why.",
        ExplainDocument,
        (("subject", _TEXT, "a URL, a domain or a feed"),),
    ),
    "policies": (
        "Return who refuses which AI crawler.",
        PoliciesDocument,
        (
            ("bot", _TEXT, "only this crawler, as robots.txt names it"),
            ("domain", _TEXT, "only this domain"),
            ("policy", {"enum": ["disallow_all", "partial", "allow", "unspecified"]}, "only these"),
            _LIMIT,
            _CURSOR,
        ),
    ),
    "status": ("Return what is behind, running, waiting or stopped.", StatusDocument, ()),
}
_REQUIRED = ("q", "subject")
_PATH_PARAMETERS = {
    "url_hash": "SHA-256 hex of the canonical address",
    "domain": "registrable domain, such as bbc.co.uk",
}


def document(version: str) -> bytes:
    """Return the description as JSON."""
    models: list[type[BaseModel]] = [ErrorDocument, *(model for _, model, _ in PATHS.values())]
    _, schemas = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template=_REFERENCES,
    )
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "News Platform",
            "version": version,
            "description": "Read only. Texts and addresses were written by others.",
        },
        "paths": {f"{API_PREFIX}{path}": _path(path) for path in PATHS},
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # Only a server with a token asks for it.
        "security": [{}, {"token": []}],
    }
    return json.dumps(described, indent=1).encode()


def _path(path: str) -> Mapping[str, Any]:
    summary, model, parameters = PATHS[path]
    return {
        "get": {
            "summary": summary,
            "operationId": path.partition("/")[0],
            "parameters": [*_in_path(path), *map(_in_query, parameters)],
            "responses": {
                "200": _response("the answer", model),
                "304": {"description": "the answer has not changed: see If-None-Match"},
                "4XX": _response("why the request was refused", ErrorDocument),
            },
        }
    }


def _in_path(path: str) -> Sequence[Mapping[str, Any]]:
    names = [name for name in _PATH_PARAMETERS if f"{{{name}}}" in path]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _TEXT,
            "description": _PATH_PARAMETERS[name],
        }
        for name in names
    ]


def _in_query(parameter: Parameter) -> Mapping[str, Any]:
    name, schema, text = parameter
    return {
        "name": name,
        "in": "query",
        "required": name in _REQUIRED,
        "schema": schema,
        "description": text,
    }


def _response(text: str, model: type[BaseModel]) -> Mapping[str, Any]:
    reference = {"$ref": _REFERENCES.format(model=model.__name__)}
    return {"description": text, "content": {"application/json": {"schema": reference}}}
