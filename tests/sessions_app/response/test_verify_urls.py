"""`uamp verify URL`: what a server shows, verified with the keys that it publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from chat_app.links.share_links import create_share_link
from chat_app.log.checkpoints import checkpoint_of
from chat_app.models import Message
from payments_app.spending import approvals
from signing_app import owner_keys
from signing_app.models import PublishedKey
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.response.signatures.signed_answers import answered
from uamp.client.errors import ExportCutError, InvalidRequestError
from uamp.client.exports import check_shared_page
from uamp.command_line import configuration
from uamp.command_line.fetching import _address
from uamp.command_line.program import program

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person


def test_a_url_is_verified_with_the_published_keys(
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    demo: ServerAddress,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UAMP_URL", demo.http)
    monkeypatch.setenv("UAMP_KEY", alice.key)
    answered(dial, alice, "echo", "Hello there")
    message = Message.objects.get(role="assistant")

    def verified(path: str) -> tuple[int, str]:
        done = CliRunner().invoke(program, ["verify", f"{demo.http}{path}"])
        # Not with lines that the server of this process logs meanwhile.
        return done.exit_code, done.stdout

    answer, proof = f"/api/v1/messages/{message.pk}", f"/api/v1/messages/{message.pk}/proof"
    code, output = verified(answer)
    assert (code, "It is by echo of" in output) == (0, True)
    code, output = verified(proof)
    assert (code, f"> {message.content}" in output, "log-tree." in output) == (0, True, True)
    code, output = verified(f"/chats/{message.chat_id}")
    assert (code, "Its head is signed by" in output, "1 as signed" in output) == (0, True, True)
    assert verified(f"/api/v1/chats/{message.chat_id}/payments") == (0, "The receipts: none.\n")
    assert verified("/api/v1/messages/msg_none")[0] == 4
    assert verified("/info")[0] == 8
    link, secret = create_share_link(chat_id=message.chat_id, made_by=alice.user)
    del link
    shared = f"/shared/{secret}"
    code, output = verified(shared)
    assert (code, "as signed by" in output, "1 as signed" in output) == (0, True, True)
    html = web.get(shared).text
    assert html.count(f'href="{shared}?format=json"') == 2
    later = f"{shared}?after={message.seq - 1}"
    assert f'href="{later}&amp;format=json"' in web.get(later).text
    # A later page is verified, not the first one.
    code, output = verified(later)
    assert (code, ": 1 messages, as signed by" in output) == (0, True), output
    page = web.get(shared, params={"format": "json"}).content
    keys = web.get("/.well-known/jwks.json").json()["keys"]
    assert message.pk.encode() not in page
    assert check_shared_page(page, keys).messages == 2
    for changed in (
        page.replace(b"Hello there", b"Hello here", 1),
        page.replace(b'"is_agent":true', b'"is_agent":false'),
        page.replace(b'"signature":"valid"', b'"signature":null'),
        page.replace(b'{"shared":{', b'{"shared":{"title":"","a":1,', 1),
    ):
        with pytest.raises(ExportCutError):
            check_shared_page(changed, keys)
    others = [key for key in keys if key["uamp_owner"] != "shares"]
    with pytest.raises(ExportCutError):
        check_shared_page(page, others)
    # A text that was changed in the rows shows under each address.
    Message.objects.filter(pk=message.pk).update(content="Hello here")
    assert verified(answer)[0] == verified(f"/chats/{message.chat_id}")[0] == 8
    assert "1 changed" in verified(shared)[1]
    # A key that is published no more verifies nothing.
    Message.objects.filter(pk=message.pk).update(content=message.content)
    owner_keys.withdraw(PublishedKey.objects.get(owner=f"agent:{message.sender_agent_id}").pk)
    assert verified(answer)[0] == verified(proof)[0] == 8
    assert checkpoint_of(message.chat_id) is not None


def test_receipts_without_their_answers_are_not_proven(
    dial: Dial, alice: Person, demo: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server signs a receipt when it is read, even if its price was changed in the ledger."""
    monkeypatch.setenv("UAMP_URL", demo.http)
    monkeypatch.setenv("UAMP_KEY", alice.key)
    agent = priced("paid", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    answered(dial, alice, "paid")
    url = f"{demo.http}/api/v1/chats/{Message.objects.all()[0].chat_id}/payments"
    done = CliRunner().invoke(program, ["verify", url])
    assert done.exit_code == 8
    assert done.output.startswith("The receipts: 1 as signed.\nNot compared with the prices")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://a.example/chats/chat_1", "/api/v1/chats/chat_1/export?format=ndjson&log=true"),
        (
            "https://a.example/api/v1/chats/chat_1",
            "/api/v1/chats/chat_1/export?format=ndjson&log=true",
        ),
        ("https://a.example/chats/chat_1#m", "/api/v1/chats/chat_1/export?format=ndjson&log=true"),
        ("https://a.example/api/v1/messages/msg_1/", "/api/v1/messages/msg_1?expand=signature"),
        ("https://a.example/api/v1/messages/msg_1/proof", "/api/v1/messages/msg_1/proof"),
        ("https://a.example/shared/shr_1", "/shared/shr_1?format=json"),
        ("https://a.example/shared/shr_1?format=json", "/shared/shr_1?format=json"),
        ("https://a.example/shared/shr_1?x=1&after=50", "/shared/shr_1?format=json&after=50"),
        (
            "https://a.example/shared/shr_1?before=9&format=json",
            "/shared/shr_1?format=json&before=9",
        ),
        ("https://a.example/shared/shr_1?after=x", "/shared/shr_1?format=json"),
        ("https://a.example/chats/c?after=5", "/api/v1/chats/c/export?format=ndjson&log=true"),
        ("https://a.example/x?y=1", "/x?y=1"),
    ],
)
def test_the_address_of_a_page_leads_to_its_export(url: str, address: str) -> None:
    assert _address(url) == ("https://a.example", address)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/x",
        "https://",
        "https://a:b@a.example/x",
        "https://[a/x",
        "http://10.0.0.1/x",
    ],
)
def test_keys_are_read_over_https_only(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        _address(url)


def test_a_key_is_sent_to_its_own_server_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    saved = configuration.SavedServer(url="https://b.example", key="uak_b")
    configuration.save(configuration.SavedServers(current="b", servers={"b": saved}))
    monkeypatch.setenv("UAMP_URL", "https://a.example/")
    monkeypatch.setenv("UAMP_KEY", "uak_a")
    keys = {name: configuration.key_for(f"https://{name}.example") for name in "abc"}
    assert keys == {"a": "uak_a", "b": "uak_b", "c": ""}
