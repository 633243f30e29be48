"""The application: services, routes and middleware, put together."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ...plugins.module_utils.orders.model import Names
from .handlers.answers import problem_response
from .logic.rate_limit import RateLimit
from .logic.services import Services
from .logic.stream_limit import StreamLimit
from .logic.tenants import Tenants
from .middleware.authentication import AuthenticationMiddleware
from .middleware.limits import LimitsMiddleware
from .middleware.metrics import Metrics
from .middleware.operation import OperationMiddleware
from .middleware.readiness import ReadinessMiddleware
from .middleware.security_headers import SecurityHeadersMiddleware
from .problems import FieldError, Problem, from_status
from .routes import admin, clusters, fleet, page, public
from .routes.openapi import openapi_of
from .settings import Settings
from .stores.access import Access
from .stores.caches import FleetCaches
from .stores.changes import ClusterChanges
from .stores.cluster_source import ClusterOrders, ClusterSource, FleetClusters
from .stores.home import Home
from .stores.hub_requests import AgentRequests, SingleHubRequests
from .stores.single_hub import this_hub
from .stores.tokens import Authenticator

ROUTERS = (public.router, page.router, clusters.router, fleet.router, admin.router)
MOST_ERRORS = 20


def build_services(settings: Settings) -> Services:
    home, hub = Home(settings.kubeconfig), settings.single_hub
    names = hub.names if hub else Names()
    source: ClusterSource = ClusterOrders(names) if hub else FleetClusters()
    changes = ClusterChanges(home.watching, settings.watch.deletions, source)
    caches = FleetCaches(home.watching, changes.changed, source, this_hub(hub.collections_paths) if hub else None)
    changes.follow(caches.clusters)
    access = Access(home, settings.cached.access_seconds, source)
    return Services(
        settings,
        home,
        caches,
        changes,
        access,
        Tenants(caches, access),
        Authenticator(home, settings.issuers, settings.token_audiences, settings.cached.token_seconds),
        StreamLimit(settings.limits.streams_per_user),
        source,
        SingleHubRequests(home, names) if hub else AgentRequests(home, settings.kubeconfig_seconds),
    )


def build_metrics(services: Services) -> Metrics:
    informers = services.caches.informers
    return Metrics(lambda: services.streams.total, lambda: {each.kind: each.restarts for each in informers})


def build_app(services: Services, metrics: Metrics) -> ASGIApp:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, generate_unique_id_function=lambda route: route.name)
    app.state.services = services
    for router in ROUTERS:
        app.include_router(router)
    document = openapi_of(app)
    app.openapi = lambda: document  # type: ignore[method-assign]
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)
    limits = services.settings.limits
    authenticated = AuthenticationMiddleware(app, services.authenticator, RateLimit(limits.requests_per_second, limits.burst))
    issuer = services.settings.login.issuer if services.settings.login else ""
    ready = ReadinessMiddleware(authenticated, services.caches)
    return OperationMiddleware(SecurityHeadersMiddleware(LimitsMiddleware(ready, limits), issuer), metrics)


def _answer(request: Request, problem: Problem) -> Response:
    return problem_response(problem, request.state.operation_id)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _answer(request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    """What is wrong with which field. The value is not repeated: it may be a secret."""
    assert isinstance(error, RequestValidationError)
    found = [FieldError(_path(each["loc"]), str(each["msg"])) for each in error.errors()[:MOST_ERRORS]]
    return _answer(request, Problem("invalid-request", "; ".join(f"{each.field}: {each.message}" for each in found), found))


def _path(location: tuple[int | str, ...]) -> str:
    """The path of a field, without the part of the request that it is in."""
    inner = location[1:] if len(location) > 1 else location
    return ".".join(str(part)[:100] for part in inner)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _answer(request, from_status(error.status_code, headers={"Allow": ", ".join(_methods(request))}))
    return _answer(request, from_status(error.status_code, str(error.detail), error.headers))


def _methods(request: Request) -> list[str]:
    """All methods of the path. The library names those of its first route only."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, Route)]
    return sorted({method for route in routes if route.path_regex.match(request.url.path) for method in route.methods or ()})


async def _unexpected(request: Request, _error: Exception) -> Response:
    """The middleware logs it."""
    return _answer(request, Problem("internal-error"))
