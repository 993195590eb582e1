"""The methods of each path: those of the table, and no other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from tests.contract.routes import IDS, ROUTES
from tests.live_server import counted_rows

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

METHODS: Final = {"GET", "PUT", "POST", "PATCH", "DELETE"}
# Unknown paths, and those of A2A's own table (`test_keys_first` has its methods).
UNKNOWN: Final = {
    "api/",
    "(?:v1|agents)/",
    "{path}",
    "agents/{name}/a2a/rest/{path}",
    "agents/{name}/a2a/{path}",
}
# These need the id of a connection.
OF_CONNECTIONS: Final = {("GET", "agents/{name}/acp"), ("DELETE", "agents/{name}/acp")}


def test_a_path_refuses_every_method_that_is_not_in_the_table(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)
    before = counted_rows()
    others = {}
    for route, methods in ROUTES.items():
        path = re.sub(r"\{(\w+)\}", lambda match: IDS.get(match[1], "1"), route)
        for method in METHODS - set(methods):
            answer = web.request(method, f"/{path}", headers=alice.headers)
            if answer.status_code == 403 and "CSRF" in answer.text:
                continue  # It is checked before the method.
            if answer.status_code == 404 and route in UNKNOWN:
                continue
            if answer.status_code != 405:
                others[method, route] = answer.status_code
    assert others == dict.fromkeys(OF_CONNECTIONS, 400)
    assert counted_rows() == before
