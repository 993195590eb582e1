"""The OpenAPI document against the server: each operation, as two people with real rows.

No answer is a failure of the server, has a status or a body that the document does not name, or
shows a row of the other person.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from chat_app.rest.contents.uploads import PART_TYPE
from tests.contract.tenants import Tenant, tenant, texts_of

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.conftest import ServerAddress

EXAMPLES: Final = 2 if os.environ.get("SHORT_RUN") else 7
"""Requests of each operation: on a busy machine they are as many, and take longer."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
NAMED_IN_BODIES: Final = {
    "chat": "chat_id",
    "reply_to": "message_id",
    "thread": "message_id",
    "around": "message_id",
}
DELETES_CHAT: Final = "DELETE /api/v1/chats/{chat_id}"
ORDER: Final = ("get", "put", "patch", "post", "delete")


# The server runs on threads of this process, and draws from `random` at any time.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.timeout(900)
def test_every_operation_keeps_its_contract(
    demo: ServerAddress, web: httpx.Client, settings: Settings
) -> None:
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)
    people = (tenant("ann"), tenant("ben"))
    load_all_checks()
    schemathesis.serializer.alias(PART_TYPE, "application/octet-stream")
    document = web.get("/api/schema").json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=demo.http)
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]  # an invalid schema raises
    # The chat goes last, since most rows are in it.
    operations.sort(key=lambda entry: (ORDER.index(entry.method), entry.label == DELETES_CHAT))
    failures: list[str] = []
    answered: dict[str, set[int]] = defaultdict(set)
    for operation in operations:
        failures += _failures(operation, people, answered)
    assert not failures, "\n\n".join(failures)
    # The examples reach what operations do, not their refusals alone.
    done = [label for label, statuses in answered.items() if min(statuses) < 300]
    assert len(answered) == len(operations)
    assert len(done) > len(operations) * 2 // 3, sorted(set(answered) - set(done))


def _failures(
    operation: Any,
    people: tuple[Tenant, Tenant],
    answered: dict[str, set[int]],
) -> list[str]:
    """Return the ways in which an operation breaks its contract, in the first example that does."""

    @hypothesis.seed(20_261_125)
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        report_multiple_bugs=False,
    )
    @hypothesis.given(case=operation.as_strategy(), data=st.data())
    def call(case: Any, data: st.DataObject) -> None:
        asker, other = data.draw(st.permutations(people))
        for part in (case.path_parameters, case.body, case.query):
            _put_ids(part, asker, other, data)
        response = case.call(headers=asker.who.headers)
        answered[operation.label].add(response.status_code)
        case.validate_response(response, checks=CHECKS)
        if response.status_code == 201:
            documented_headers = operation.definition.raw["responses"]["201"]["headers"]
            assert ("Location" in documented_headers) is ("location" in response.headers), (
                response.headers
            )
        text = response.content.decode("utf-8", "replace")
        request = f"{response.request.method} {response.request.url} {response.request.body!r}"
        for private_text in texts_of(other):
            # A refusal repeats the path of the request, which names what was asked for.
            if private_text in text and private_text not in request:
                raise AssertionError(
                    f"{request} of {asker.who.user} shows {private_text}: {text[:500]}"
                )

    try:
        call()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return [f"{operation.label}\n{_words(error)}"]
    return []


def _put_ids(part: Any, asker: Tenant, other: Tenant, data: st.DataObject) -> None:
    """Name rows of both people in the parameters or the body of a request, where they fit."""
    for name in part if isinstance(part, dict) else ():
        kind = NAMED_IN_BODIES.get(name, name)
        if kind in asker.ids:
            # Most of all one's own: what is refused at once tries little.
            candidates = [asker.ids[kind], asker.ids[kind], other.ids[kind], part[name]]
            part[name] = data.draw(st.sampled_from(candidates))


def _words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(_words(cause) for cause in error.exceptions)
    return f"{type(error).__name__}: {error}"[:1500]
