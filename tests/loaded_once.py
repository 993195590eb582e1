"""Load static files and certificates once per process rather than once per client."""

from __future__ import annotations

import ssl
from typing import Any

import certifi
from servestatic.middleware import ServeStaticMiddleware

find_static_files = ServeStaticMiddleware.add_files_from_finders
static_files: dict[str, dict[str, Any]] = {}


def add_static_files(middleware: ServeStaticMiddleware) -> None:
    """Find the static files once per process: each test client creates the middleware anew."""
    prefix = middleware.static_prefix
    if prefix not in static_files:
        find_static_files(middleware)
        static_files[prefix] = dict(middleware.files)
    middleware.files.update(static_files[prefix])


make_context = ssl.create_default_context
contexts: list[ssl.SSLContext] = []


def create_default_context(*arguments: Any, **options: Any) -> ssl.SSLContext:
    """Load the certificates of the certifi package once: every HTTP client does so, in 20 ms."""
    if arguments or options != {"cafile": certifi.where()}:
        return make_context(*arguments, **options)
    if not contexts:
        contexts.append(make_context(**options))
    return contexts[0]


def use() -> None:
    """Make test clients and HTTP clients of this process share what is loaded."""
    # The product's files do not change while its tests run.
    ServeStaticMiddleware.add_files_from_finders = add_static_files  # type: ignore[method-assign, assignment]  # as the line above says
    # Clients that verify with another context pass other arguments.
    ssl.create_default_context = create_default_context
