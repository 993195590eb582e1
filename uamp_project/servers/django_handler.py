"""Django's HTTP handler on the event loop, with a thread only for requests that need one.

Django starts a thread for every request, in which it calls the steps of its middleware and closes
the response. Here, a request gets its thread from the first synchronous view, or from a step that
may block (`loop_middleware`): requests of the protocols have none.

The database connections of a request are returned before its response is sent. Django returns them
when the response is closed, after the client has read all of it, so a few slow readers would hold
every connection of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import django
from asgiref.sync import SyncToAsync, sync_to_async
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed, RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.exception import convert_exception_to_response
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, reset_queries
from django.db import connections as django_connections
from django.urls import get_resolver, set_script_prefix
from django.utils.module_loading import import_string

from agents_app.workers import connections
from telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from django.urls import ResolverMatch, URLResolver

    from uamp_project.edge.transports import Scope

django.setup(set_prefix=False)

# It imports models, which need the apps to be loaded.
from uamp_project.servers.cookie_values import read_in_linear_time  # noqa: E402
from uamp_project.servers.loop_middleware import on_loop  # noqa: E402

read_in_linear_time()

# Meant for threads that keep connections of an earlier request; no thread here does.
request_started.disconnect(reset_queries)
request_started.disconnect(close_old_connections)

RESOLVED_PATHS: Final = 1024
"""How many paths are cached with their views: protocols use few paths, but patterns are many."""
REMEMBERED_CHARS: Final = 256
"""Longer paths are resolved each time, because clients choose them."""


class LoopHandler(ASGIHandler):
    """Answers requests without holding database connections while clients read."""

    def load_middleware(self, is_async: bool = True) -> None:  # noqa: FBT001, FBT002 Django's signature
        """Build the chain of `settings.MIDDLEWARE`, with loop versions where they exist."""
        views: list[Any] = []
        exceptions: list[Any] = []
        chain = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]  # Django's own chain calls it
        for path in reversed(settings.MIDDLEWARE):
            try:
                middleware = on_loop(import_string(path))(chain)
            except MiddlewareNotUsed:
                continue
            if hasattr(middleware, "process_view"):
                views.insert(0, self.adapt_method_mode(is_async, middleware.process_view))
            if hasattr(middleware, "process_exception"):
                # Django calls these in the thread of the request.
                exceptions.append(middleware.process_exception)
            chain = convert_exception_to_response(middleware)
        self._view_middleware = views
        self._exception_middleware = exceptions
        self._template_response_middleware: list[Any] = []
        self._middleware_chain = chain

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        """Resolve the view of a request, with a cache by path."""
        path, resolver = request.path_info, get_resolver()
        is_short = len(path) <= REMEMBERED_CHARS
        match = _resolved(resolver, path) if is_short else resolver.resolve(path)
        request.resolver_match = match
        access_log.note(route=match.route)
        return match

    async def handle(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request, until its response is sent, its client is gone or it is cancelled."""
        try:
            await self._handle(scope, receive, send)
        finally:
            if _has_thread():
                # The thread ends with its request. Its connections would stay open until garbage
                # collection, each with two files on SQLite, and never return to a pool.
                await sync_to_async(django_connections.close_all)()

    async def _handle(self, scope: Scope, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            set_script_prefix(get_script_prefix(scope))
            await request_started.asend(sender=self.__class__, scope=scope)
            request, response = self.create_request(scope, body)
            if response is not None:
                await self.send_response(response, send)
            elif request is not None:
                response = await self._answered(request, receive, send)
            end = partial(request_finished.send, sender=self.__class__)
            await _in_thread_of_request(end if response is None else response.close)

    async def _answered(
        self, request: HttpRequest, receive: Any, send: Any
    ) -> HttpResponseBase | None:
        """Return the response that was sent, even in part; None if the view was cancelled."""
        leaving = asyncio.create_task(self.listen_for_disconnect(receive))
        answering = asyncio.create_task(self._answer(request, send))
        tasks = (leaving, answering)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not leaving.cancelled() and not isinstance(leaving.exception(), RequestAborted):
            # The server sent something after the body.
            leaving.result()
        return None if answering.cancelled() else answering.result()

    async def _answer(self, request: HttpRequest, send: Any) -> HttpResponseBase:
        response: HttpResponseBase = await self.run_get_response(request)
        _note_person(request)
        # A view's generator ends when its client leaves; the response is closed as always.
        with contextlib.suppress(asyncio.CancelledError):
            await self.send_response(response, send)
        return response

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response, after returning non-persistent connections to the pool."""
        response: HttpResponseBase = await super().run_get_response(request)
        await _in_thread_of_request(connections.release)
        return response


def _note_person(request: HttpRequest) -> None:
    """Name the person of a cookie in the access log, if the request has looked at it."""
    user = getattr(request, "_cached_user", None)
    if user is not None and user.pk is not None:
        access_log.note(principal=f"user:{user.pk}")


@lru_cache(maxsize=RESOLVED_PATHS)
def _resolved(resolver: URLResolver, path: str) -> ResolverMatch:
    return resolver.resolve(path)


def _has_thread() -> bool:
    """Return whether the request of this context has a thread."""
    context = SyncToAsync.thread_sensitive_context.get()
    return context in SyncToAsync.context_to_thread_executor


async def _in_thread_of_request(call: Callable[[], object]) -> None:
    """Call a function in the request's thread, or on the loop if the request has none."""
    if _has_thread():
        await sync_to_async(call)()
    else:
        call()
