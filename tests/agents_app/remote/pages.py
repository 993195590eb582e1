"""JSON values at paths, as the address of an agent has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.http_server import QuietHandler

if TYPE_CHECKING:
    from collections.abc import Mapping


def pages(values: Mapping[str, Any]) -> type[QuietHandler]:
    """Return a handler that answers with these JSON values by their paths."""

    class Pages(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 the base class calls it
            value = values.get(self.path)
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(404 if value is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Pages
