"""A vendor's count of a medium is reserved before anything is delivered."""

from __future__ import annotations

import base64
import io
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from agents_app.providers import scripts
from chat_app.contents import storage
from chat_app.contents.measures import UNMEASURED
from chat_app.models import Content
from payments_app.models import Hold
from payments_app.spending import approvals
from sessions_app.models import Response
from tests.chat_app.contents.pdf_files import FLATE, LINES, shown, stream
from tests.client import TERMINAL, wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd
from tests.sessions_app.model_server import model_server, text_chunks
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Pause, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from tests.client import UampClient
    from tests.live_server import Dial, Person
    from upp import LLMRequest

TEN_MINUTES = b"\xff\xf3\x14\xc0" + bytes(20)
"""A frame of 24 ms of MP3 at 8 kbit/s."""


def _picture(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("1", (width, height)).save(file, "png")
    return file.getvalue()


def _pdf(pages: int) -> bytes:
    kids = b"<</Type/Pages/Count 1/Kids[" + b"3 0 R " * pages + b"]>>"
    packed = zlib.compress(kids + b"<</Type /Page>>")
    head = b"9 0 obj <</Type/ObjStm/Filter/FlateDecode>>\nstream\n"
    return b"%PDF-1.7\n" + head + packed + b"\nendstream endobj"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


SOUND = _base64(TEN_MINUTES * 25_000)
PICTURE = _base64(_picture(4_000, 3_000))
PDF = _base64(_pdf(200))
# In UTF-16, and of bytes that are no UTF-8 and are read as one character each.
CHINESE = _base64(("\N{CJK UNIFIED IDEOGRAPH-6F22}" * 30_000).encode("utf-16"))
BROKEN = _base64(b"\x81" * 30_000)
# What is sent, and what a vendor counts of it: 32 tokens a second, 258 a tile, 3,000 a page, and
# one for each character of a text that is not ASCII.
MEDIA: dict[str, tuple[dict[str, Any], int]] = {
    "audio": ({"audio": SOUND, "format": "mp3"}, 600 * 32),
    "image": ({"image": PICTURE, "format": "png"}, 24 * 258),
    "file": ({"file": PDF, "filename": "a.pdf", "mime_type": "application/pdf"}, 200 * 3_000),
    "file of UTF-16": (
        {"file": CHINESE, "filename": "a.txt", "mime_type": "text/plain"}, 30_000,
    ),
    "file of no UTF-8": (
        {"file": BROKEN, "filename": "a.txt", "mime_type": "text/plain"}, 30_000,
    ),
    "file of a long name": (
        {
            "file": _base64(b"a"),
            "filename": "\N{CJK UNIFIED IDEOGRAPH-6F22}" * 80,
            "mime_type": "text/plain",
        },
        80,
    ),
    "file of a picture": (
        {"file": PICTURE, "filename": "a.png", "mime_type": "image/png"}, 24 * 258,
    ),
}  # fmt: skip


def script(counted: int, *, pause: bool = False) -> Any:
    """Return a script that answers, and counts so much input."""

    async def listener(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Listened.")
        if pause:
            yield Pause(60)
        yield Usage(TokenUsage(input_tokens=counted, output_tokens=1, total_tokens=counted + 1))

    return listener


def _send(client: UampClient, name: str, place: str) -> None:
    fields, _ = MEDIA[name]
    kind = name.partition(" ")[0]
    if place == "input":
        client.send("input.text", text="Listen")
        client.send(f"input.{kind}", **fields)
    else:
        before = {"role": "user", "content": "Before", "content_items": [{"type": kind, **fields}]}
        client.send("input.text", text="Listen", messages=[before])
    client.send("response.create")


@pytest.mark.sampled
@pytest.mark.parametrize("place", ["input", "messages"])
@pytest.mark.parametrize("name", MEDIA)
def test_as_much_as_a_vendor_counts_is_held_before_the_first_word(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    counted = MEDIA[name][1]
    monkeypatch.setitem(scripts.SCRIPTS, "listener", script(counted))
    agent = priced("paid", "listener", input_per_1k="0.001")
    client = dial(rich(alice))
    client.create_session(agent="paid")
    _send(client, name, place)
    demand = client.until("payment.required", "session.error", *TERMINAL)[-1]
    assert demand["type"] == "payment.required", demand
    price = usd("0.000001") * counted
    assert price <= usd(demand["requirements"]["amount"])
    pay(client, demand)
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    wait_until(clean)
    assert usd(earned(agent)) == price


def test_a_sound_of_an_earlier_turn_is_held_again(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = MEDIA["audio"][1]
    monkeypatch.setitem(scripts.SCRIPTS, "listener", script(counted))
    agent = priced("paid", "listener", audio_input_per_1k="0.001", input_per_1k="0.001")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    client = dial(alice)
    client.create_session(agent="paid")
    _send(client, "audio", "input")
    client.until(*TERMINAL)
    client.ask("Again")
    client.until("response.created")
    client.until(*TERMINAL)
    first = [hold.amount for hold in Hold.objects.order_by("pk")]
    assert len(first) == 2
    assert min(first) >= (usd("0.000001") * counted).amount


@pytest.mark.parametrize("ending", ["cancel", "time-out"])
def test_a_step_that_is_cut_off_is_charged_what_a_vendor_usually_counts(
    dial: Dial, alice: Person, settings: Settings, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    if ending == "time-out":
        settings.UAMP_RESPONSE_SECONDS = 2
    monkeypatch.setitem(scripts.SCRIPTS, "listener", script(0, pause=True))
    agent = priced("paid", "listener", input_per_1k="0.001", audio_input_per_1k="0.002")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    client = dial(alice)
    client.create_session(agent="paid")
    _send(client, "audio", "input")
    client.until("response.delta")
    if ending == "cancel":
        client.send("response.cancel")
    client.until(*TERMINAL)
    wait_until(clean)
    of_sound = usd("0.000002") * (600 * 32)
    assert of_sound <= usd(earned(agent)) <= of_sound + usd("0.0001")


def test_a_cancel_at_the_card_pays_what_was_held_of_what_was_counted_beyond_it(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "listener", script(9_000_000))
    agent = priced("paid", "listener", input_per_1k="0.001")
    client = dial(rich(alice))
    client.create_session(agent="paid")
    _send(client, "audio", "input")
    demand = client.until("payment.required")[-1]
    pay(client, demand)
    more = client.until("payment.required", *TERMINAL)[-1]
    assert more["extra"] == {"action": "topup"}
    client.send("response.cancel")
    assert client.until(*TERMINAL)[-1]["type"] == "response.cancelled"
    wait_until(clean)
    assert usd(earned(agent)) == usd(demand["requirements"]["amount"])


WMA = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + bytes(600)
"""A sound whose bytes may last any time."""


def _listens(agent: Any) -> None:
    """Make an agent of a vendor whose models hear sounds."""
    agent.provider, agent.model, agent.options = "google", "gemini", {}
    agent.save()


def test_a_sound_that_cannot_be_measured_is_refused_where_it_has_a_price(
    dial: Dial, alice: Person
) -> None:
    agent = priced("paid", input_per_1k="0.001")
    _listens(agent)
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    client = dial(alice)
    client.create_session(agent="paid")
    client.send("input.text", text="Listen")
    client.send("input.audio", audio=_base64(WMA), format="x-ms-wma")
    client.send("response.create")
    refused = client.until("session.error", "payment.required", *TERMINAL)[-1]
    assert refused["type"] == "session.error", refused
    assert refused["error"]["code"] == "unsupported_modality"
    assert not Response.objects.exists()
    assert not Hold.objects.exists()
    assert clean()


@pytest.mark.parametrize("prices", [{"input_per_1k": "0.001"}, {"per_answer": "0.1"}])
def test_a_sound_that_cannot_be_measured_is_withheld_from_a_model_that_charges_for_it(
    dial: Dial, alice: Person, prices: dict[str, str]
) -> None:
    agent = priced("paid", **prices)
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    client = dial(alice)
    client.create_session(agent="paid")
    _send(client, "audio", "input")
    client.until(*TERMINAL)
    Content.objects.update(extent=UNMEASURED)
    content, chat_id = Content.objects.get(), Response.objects.get().chat_id
    read_content = partial(storage.read_in_chat, str(content.pk), chat_id)
    assert read_content()[1] == "audio/mpeg"
    with pytest.raises(LookupError):
        read_content(is_paid=True)
    client.ask("Again")
    client.until("response.created")
    assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    assert max(hold.amount for hold in Hold.objects.order_by("-pk")[:1]) <= usd("0.2").amount
    wait_until(clean)


@pytest.mark.parametrize(("is_broken", "is_paid"), [(True, True), (True, False), (False, True)])
def test_a_picture_that_cannot_be_checked_is_withheld_from_a_model_that_charges_for_it(
    dial: Dial, alice: Person, *, is_broken: bool, is_paid: bool
) -> None:
    agent = priced("paid", per_answer="0.1")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
    data = _picture(4_000, 3_000)
    if is_broken:
        # A comment after the header, with a wrong checksum, which vendors need not check.
        data = data[:33] + b"\0\0\0\3tEXta\0bcccc" + data[33:]
    fields = {"file": _base64(data), "filename": "a", "mime_type": "application/pdf"}
    client = dial(alice)
    client.create_session(agent="paid")
    client.send("input.text", text="Look")
    client.send("input.file", **fields)
    client.send("response.create")
    client.until(*TERMINAL)
    content, chat_id = Content.objects.get(), Response.objects.get().chat_id
    assert (content.mime_type == "application/octet-stream") is is_broken
    read_content = partial(storage.read_in_chat, str(content.pk), chat_id, is_paid=is_paid)
    if is_broken and is_paid:
        with pytest.raises(LookupError):
            read_content()
    else:
        assert read_content()[0] == data


@pytest.mark.parametrize(("counted", "charged"), [(84_000, 84_000), (10**9, None)])
def test_a_server_of_the_agents_own_may_count_media_that_are_smaller_than_their_tokens(
    dial: Dial, alice: Person, counted: int, charged: int | None
) -> None:
    data = shown(stream(zlib.compress(LINES[:2_000] + b") Tj"), FLATE), pages=40)
    assert len(data) < 3_000
    file = {"file": _base64(data), "filename": "a.pdf", "mime_type": "application/pdf"}
    usage = {"id": "1", "choices": [], "usage": {"prompt_tokens": counted, "completion_tokens": 1}}
    with model_server([*text_chunks("Read.")[:-1], usage]) as model:
        agent = model.agent("paid", pricing={"input_per_1k": "0.001"})
        approvals.approve(rich(alice).user.pk, agent.pk, usd("9"))
        client = dial(alice)
        client.create_session(agent="paid")
        client.send("input.text", text="Read")
        client.send("input.file", **file)
        client.send("response.create")
        assert client.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
        wait_until(clean)
    held_amount = sum(hold.amount for hold in Hold.objects.all())
    if charged is None:
        # A lie is cut to what a vendor may count, which is about what was reserved.
        assert usd("0.000001") * 40 * 4_600 <= usd(earned(agent))
        assert usd(earned(agent)).amount <= held_amount * 1.1
    else:
        assert usd(earned(agent)) == usd("0.000001") * charged
