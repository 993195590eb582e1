"""Middleware of a generation: its hooks and two implementations (UPP-1.3 §10).

Middleware of an agent's run is in `uap.middleware`.
"""

from upp.middleware.chain import Middleware, MiddlewareContext
from upp.middleware.ready import LoggingMiddleware, ParsedObjectMiddleware

__all__ = ["LoggingMiddleware", "Middleware", "MiddlewareContext", "ParsedObjectMiddleware"]
