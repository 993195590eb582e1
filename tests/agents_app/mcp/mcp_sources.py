"""Tool sources for tests: rows that lead to the servers in this folder."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from agents_app.models import ToolSource
from tests import services
from tests.programs import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
SECRET = "hunter2hunter2"


def program(journal: Path, *, way: str = "", **fields: Any) -> ToolSource:
    """Add the source `demo`: the server of the package, or the crude one that goes a way."""
    script = HERE / ("mcp_crude.py" if way else "mcp_server.py")
    return ToolSource.objects.create(
        **{
            "name": "demo",
            "transport": "stdio",
            "command": sys.executable,
            "args": [str(script), str(journal), *([way] if way else [])],
            "env": {"TOKEN": SECRET},
            "seconds": 20,
            **fields,
        }
    )


def address(url: str, **fields: Any) -> ToolSource:
    """Add the source `web` at an address."""
    return ToolSource.objects.create(
        **{"name": "web", "transport": "http", "url": url, "seconds": 20, **fields}
    )


@contextmanager
def http_server(journal: Path) -> Iterator[str]:
    """Run the server of the package over HTTP; yields its "host:port"."""
    place = f"127.0.0.1:{services.free_port()}"
    with Program(
        *(sys.executable, HERE / "mcp_server.py", journal, place.partition(":")[2]),
        stderr=subprocess.DEVNULL,
    ) as program:
        program.wait_until(lambda: _answers(place), "the MCP server answers")
        yield place


def _answers(place: str) -> bool:
    try:
        httpx.get(f"http://{place}/mcp", timeout=5)
    except httpx.TransportError:
        return False
    return True


def lines(journal: Path) -> list[str]:
    """Return the lines that a server wrote down, even before it has begun."""
    return journal.read_text().splitlines() if journal.exists() else []


def forget() -> None:
    """Remove every source."""
    ToolSource.objects.all().delete()
