"""Django's HTTP handler, which returns the connections of a request before its response is sent.

Django returns them when the response is closed, after the client has taken all of it. A few clients
that read slowly would hold every connection of the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import django
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler

from agents_app.workers import connections

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

django.setup(set_prefix=False)


class ReleasingHandler(ASGIHandler):
    """Answers requests; no connection waits for a client."""

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response; connections that do not persist are back in the pool by then.

        The views of a request run on one thread, which has its connections.
        """
        response: HttpResponseBase = await super().run_get_response(request)
        await sync_to_async(connections.release)()
        return response
