"""Documents that every client may have: made once for many requests, bounded, known by ETag."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from signing_app import owner_keys, published, views
from signing_app.cached_documents import CachedDocument, forget_all
from tests.client import WAIT_SECONDS
from tests.threads import join_threads
from uamp.signatures import agent_owner

if TYPE_CHECKING:
    from pytest_django import DjangoCaptureOnCommitCallbacks

KEYS = "/.well-known/jwks.json"
OWNER = agent_owner("agent_1")


def kids(**headers: str) -> list[str]:
    return [key["kid"] for key in Client(headers=headers).get(KEYS).json()["keys"]]


@pytest.mark.django_db
def test_the_set_of_all_keys_is_read_once_for_many_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(views.every_key, "seconds", 3600)
    owner_keys.signing_key(OWNER)
    forget_all()
    with CaptureQueriesContext(connection) as captured:
        found = [kids() for _ in range(5)]
    # One query for the keys of agents, one for those of other purposes.
    assert len([query for query in captured if "publishedkey" in query["sql"]]) == 2
    assert found == [found[0]] * 5


@pytest.mark.django_db
def test_a_new_and_a_withdrawn_key_are_seen_by_their_process_at_once(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    before = kids()
    with django_capture_on_commit_callbacks(execute=True):
        kid = owner_keys.signing_key(OWNER).kid
    assert set(kids()) == {*before, kid}
    owner_keys.withdraw(kid)
    assert kids() == before


@pytest.mark.django_db
def test_what_others_cache_before_a_commit_is_forgotten_after_it(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    kid = owner_keys.signing_key(OWNER).kid
    for change in (lambda: owner_keys.rotate(OWNER), lambda: owner_keys.withdraw(kid)):
        with django_capture_on_commit_callbacks() as callbacks:
            change()
        assert owner_keys.forget in callbacks


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["", "?kid=none", "?kid=%00"])
def test_a_client_that_has_the_set_gets_304(query: str) -> None:
    answer = Client().get(f"{KEYS}{query}")
    etag = answer["ETag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = Client(headers={"If-None-Match": known}).get(f"{KEYS}{query}")
        assert (again.status_code, again.content) == (304, b""), known
        assert again["Access-Control-Allow-Origin"] == "*"
        assert (again["ETag"], again["Cache-Control"]) == (etag, answer["Cache-Control"])
    assert Client(headers={"If-None-Match": '"other"'}).get(f"{KEYS}{query}").status_code == 200


@pytest.mark.django_db
def test_the_set_of_all_keys_has_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "MAX_AGENT_KEYS", 2)
    old, *newer = (owner_keys.signing_key(agent_owner(f"{n}")).kid for n in range(3))
    forget_all()
    assert kids()[-2:] == newer[::-1]
    assert old not in kids()
    assert Client().get(KEYS, {"kid": old}).json()["keys"][0]["kid"] == old


def test_others_get_the_former_document_while_one_thread_makes_it() -> None:
    begun, go_on = threading.Event(), threading.Event()
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        if len(made) == 2:
            begun.set()
            assert go_on.wait(WAIT_SECONDS)
        return len(made)

    document = CachedDocument(make, seconds=0)
    assert document.read() == 1
    found: list[Any] = []
    maker = threading.Thread(target=lambda: found.append(document.read()))
    maker.start()
    assert begun.wait(WAIT_SECONDS)
    assert [document.read() for _ in range(3)] == [1, 1, 1]
    go_on.set()
    join_threads([maker])
    assert (found, made) == ([2], [0, 1])


def test_a_document_that_was_forgotten_while_it_was_made_is_not_kept() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(0)
        if len(made) == 1:
            document.forget()
        return len(made)

    document = CachedDocument(make, seconds=3600)
    assert [document.read() for _ in range(3)] == [1, 2, 2]
