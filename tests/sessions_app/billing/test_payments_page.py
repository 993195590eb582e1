"""The requests of docs/payments.md work as they stand, against the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from payments_app.urls import urlpatterns
from tests.page_examples import run_shell, shell_examples
from tests.sessions_app.billing.paid_agents import rich, wallet

if TYPE_CHECKING:
    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = (Path(__file__).parents[3] / "docs" / "payments.md").read_text()
EXAMPLES = shell_examples(PAGE)


def run(number: int, demo: ServerAddress, who: Person) -> list[Any]:
    """Run an example as a person with ten dollars, and return the answers that it printed."""
    printed = run_shell(EXAMPLES[number], http=demo.http, key=rich(who).key)
    decoder, answers = json.JSONDecoder(), []
    while printed:
        answer, end = decoder.raw_decode(printed)
        answers.append(answer)
        printed = printed[end:].lstrip()
    return answers


def test_every_example_is_tried() -> None:
    assert len(EXAMPLES) == 3


def test_a_token_is_made_verified_and_ended(demo: ServerAddress, alice: Person) -> None:
    verified, ended = run(0, demo, alice)
    assert (verified["valid"], verified["balance"]) == (True, "1")
    assert (ended["status"], ended["returned"]) == ("revoked", "1")
    assert str(wallet(alice).available) == "10"


def test_a_token_is_locked_and_settled(demo: ServerAddress, alice: Person) -> None:
    (settled,) = run(1, demo, alice)
    assert (settled["charged"], settled["released"]) == ("0.2", "0.3")


def test_the_account_has_its_limits_and_a_top_up(demo: ServerAddress, alice: Person) -> None:
    balance, limits, approval, top_up = run(2, demo, alice)
    assert balance["available"] == "10"
    assert limits["limits"][0]["amount"] == "5"
    assert approval["up_to"] == "0.05"
    assert top_up["amount"] == "10"


def test_everything_but_the_public_keys_needs_a_key(web: httpx.Client) -> None:
    open_to_all = {"jwks", "hook"}
    for pattern in urlpatterns:
        if pattern.name in open_to_all:
            continue
        path = {
            "token": "tokens/t", "token_tree": "tokens/t/tree", "token_topup": "tokens/t/topup",
            "token_revoke": "tokens/t/revoke", "lock": "lock/l", "approval": "approvals/echo",
            "sponsorship": "sponsorships/echo", "top_up": f"topups/topup_{'0' * 32}",
        }.get(str(pattern.name))  # fmt: skip
        path = f"/api/payments/{path}" if path else f"/{pattern.pattern}"
        assert web.options(path).status_code == 401, path
    assert web.get("/.well-known/jwks.json").status_code == 200
