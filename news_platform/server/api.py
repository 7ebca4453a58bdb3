"""The JSON API under /api/v1: one function per path, described in OpenAPI 3.1."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.routing import Route

from news_platform.server.app_state import AppState
from news_platform.server.article_view import article_document, explain_document, search_document
from news_platform.server.documents import (
    API_PREFIX,
    ArticleDocument,
    AttentionDocument,
    Document,
    DomainDocument,
    EditsDocument,
    ErrorDocument,
    ExplainDocument,
    FeedsDocument,
    OverviewDocument,
    PoliciesDocument,
    SearchDocument,
    StatusDocument,
    error_body,
)
from news_platform.server.domain_view import domain_document, policies_document
from news_platform.server.overview import (
    attention_document,
    edits_document,
    feeds_document,
    overview_document,
)
from news_platform.server.parameters import (
    ArticleParameters,
    AttentionParameters,
    DomainParameters,
    ExplainParameters,
    FeedParameters,
    Parameters,
    PolicyChoice,
    SearchParameters,
)
from news_platform.server.response_cache import Answer, Make, ResponseCache
from news_platform.server.stories import (
    StoriesDocument,
    StoriesParameters,
    StoryParameters,
    TimelineDocument,
    stories_document,
    timeline_document,
)

_JSON = "application/json"
_REFERENCES = "#/components/schemas/{model}"
_REQUIRED = ("q", "subject")


def api_routes(answers: ResponseCache) -> list[Route]:
    """Return the routes of the API."""
    makers = {path: _maker(one) for path, one in ENDPOINTS.items()} | {"openapi.json": _openapi}
    return [
        Route(f"{API_PREFIX}{path}", answers.endpoint(make), name=f"api {path}")
        for path, make in makers.items()
    ]


def refused_json(_state: AppState, _request: Request, status: int, message: str) -> Answer:
    """Return the answer to a request that failed."""
    return Answer(error_body(status, message), _JSON, status)


def _maker(endpoint: "Endpoint") -> Make:
    def make(state: AppState, request: Request) -> Answer:
        document = endpoint.find(state, endpoint.parameters.of(request))
        return Answer(document.model_dump_json().encode(), _JSON)

    return make


def _openapi(_state: AppState, _request: Request) -> Answer:
    return Answer(openapi_document(version("news-platform")), _JSON)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path: how its document is found, from which parameters."""

    summary: str
    find: Callable[[AppState, Any], Document]
    document: type[Document]
    parameters: type[Parameters] = Parameters
    # What the page of the API links to.
    example: str = ""


ENDPOINTS: Mapping[str, Endpoint] = {
    "search": Endpoint(
        "Search the text of all articles.",
        lambda state, asked: search_document(state, asked.q, asked.options()),
        SearchDocument,
        SearchParameters,
        example="search?q=bridge&limit=5",
    ),
    "articles/{url_hash}": Endpoint(
        "Return an article.",
        lambda state, asked: article_document(state, asked.url_hash, day=asked.day),
        ArticleDocument,
        ArticleParameters,
    ),
    "stories": Endpoint(
        "Return the stories of a day.", stories_document, StoriesDocument, StoriesParameters
    ),
    "stories/{story_id}": Endpoint(
        "Return how a story went on.",
        lambda state, asked: timeline_document(state, asked.story_id),
        TimelineDocument,
        StoryParameters,
    ),
    "domains/{domain}": Endpoint(
        "Return what is known about a domain.",
        lambda state, asked: domain_document(state, asked.domain),
        DomainDocument,
        DomainParameters,
    ),
    "explain": Endpoint(
        "Say where a URL, a domain or a feed is, and why.",
        lambda state, asked: explain_document(state, asked.subject),
        ExplainDocument,
        ExplainParameters,
        example="explain?subject=meridian.example",
    ),
    "policies": Endpoint(
        "Return who allows and refuses what, to which crawler.",
        policies_document,
        PoliciesDocument,
        PolicyChoice,
        example="policies?purpose=ai_train&verdict=refuse",
    ),
    "overview": Endpoint(
        "Return how much there is, and how fresh it is.",
        lambda state, _: overview_document(state),
        OverviewDocument,
        example="overview",
    ),
    "feeds": Endpoint(
        "List the feeds, the least healthy first.",
        feeds_document,
        FeedsDocument,
        FeedParameters,
        example="feeds",
    ),
    "edits": Endpoint(
        "Return what publishers changed after they published.",
        lambda state, _: edits_document(state),
        EditsDocument,
        example="edits",
    ),
    "attention": Endpoint(
        "Return the share of all articles per day that queries find.",
        attention_document,
        AttentionDocument,
        AttentionParameters,
        example="attention?q=bridge&q=council",
    ),
    "status": Endpoint(
        "Return what is behind, running, waiting or stopped.",
        lambda state, _: state.status.current(),
        StatusDocument,
        example="status",
    ),
}


def openapi_document(release: str) -> bytes:
    """Return the description of the API as JSON."""
    models: list[type[Document]] = [ErrorDocument, *(one.document for one in ENDPOINTS.values())]
    _, schemas = models_json_schema(
        [(model, "serialization") for model in models], ref_template=_REFERENCES
    )
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "News Platform",
            "version": release,
            "description": "Read only. Texts and addresses were written by others.",
        },
        "paths": {f"{API_PREFIX}{path}": _path(path) for path in ENDPOINTS},
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # Only a server with a token asks for it.
        "security": [{}, {"token": []}],
    }
    return json.dumps(described, indent=1).encode()


def _path(path: str) -> Mapping[str, Any]:
    endpoint = ENDPOINTS[path]
    return {
        "get": {
            "summary": endpoint.summary,
            "operationId": path.partition("/")[0],
            "parameters": [
                _parameter(path, name, schema)
                for name, schema in endpoint.parameters.described().items()
            ],
            "responses": {
                "200": _response("the answer", endpoint.document),
                "304": {"description": "the answer has not changed: see If-None-Match"},
                "4XX": _response("why the request was refused", ErrorDocument),
            },
        }
    }


def _parameter(path: str, name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    is_in_path = f"{{{name}}}" in path
    return {
        "name": name,
        "in": "path" if is_in_path else "query",
        "required": is_in_path or name in _REQUIRED,
        "description": schema["description"],
        "schema": {key: it for key, it in schema.items() if key not in ("title", "description")},
    }


def _response(text: str, model: type[BaseModel]) -> Mapping[str, Any]:
    reference = {"$ref": _REFERENCES.format(model=model.__name__)}
    return {"description": text, "content": {"application/json": {"schema": reference}}}
