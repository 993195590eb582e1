"""An agent in a call: it receives speech from a file, and all participants get its answer."""

from __future__ import annotations

import math
import wave
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests import services
from tests.journeys.product import BROWSER_ARGUMENTS, Product, running_product
from tests.journeys.test_calls import GETS_SOUND, MICROPHONE, add_carol, pages
from tests.realtime_vendor import RealtimeVendor, realtime_vendor
from tests.screens.findings import findings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from playwright.async_api import Browser

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
]

RATE = 48_000
SPEAKER = """
from agents_app.models import Agent
from chat_app.members.participants import add_participant
from django.contrib.auth.models import User
from tests.realtime_vendor import make_agent
agent = make_agent(
    {url!r},
    options={{"transcription": "whisper"}},
    pricing={{"audio_output_per_1k": "0.1"}},
)
alice = User.objects.get(username="alice")
add_participant(chat_id={chat!r}, added_by=alice, agent_id=agent.pk)
"""
# The peak volume of the host's agents, as received by another participant.
LOUDNESS = """async () => {
  const { calls } = await import("/static/chat/context.js");
  const streams = [...calls.active.mesh.peers.values()].map(({ agents }) => agents);
  const found = streams.find((stream) => stream.getAudioTracks().length);
  if (!found) return 0;
  globalThis.loudest ??= 0;
  if (!globalThis.listening) {
    globalThis.listening = new AudioContext();
    const analyser = listening.createAnalyser();
    listening.createMediaStreamSource(found).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      for (const sample of samples) loudest = Math.max(loudest, Math.abs(sample));
    }, 20);
  }
  return loudest;
}"""


def write_speech(path: Path) -> None:
    """Write a second of speech-like audio and three of silence; the browser loops the file."""
    samples = bytearray()
    for n in range(RATE * 4):
        at = n / RATE
        # Syllables: noise suppression treats a steady tone as noise.
        loud = max(0.0, math.sin(2 * math.pi * 4 * at)) if at < 1 else 0.0
        sound = sum(math.sin(2 * math.pi * 140 * k * at) / k for k in range(1, 12))
        value = int(12_000 * loud * sound / 2)
        samples += max(-32_768, min(32_767, value)).to_bytes(2, "little", signed=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(bytes(samples))


@pytest_asyncio.fixture(scope="module", loop_scope="session", name="speaking")
async def speaking_browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """Run a Chromium whose microphone plays a file."""
    path = services.chromium(for_calls=True)
    if path is None:
        pytest.skip("no Chromium: set CHROMIUM or install chromium")
    speech = tmp_path_factory.mktemp("speech") / "speech.wav"
    write_speech(speech)
    arguments = [*BROWSER_ARGUMENTS, *MICROPHONE, f"--use-file-for-fake-audio-capture={speech}"]
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=path,
            args=[*arguments, "--autoplay-policy=no-user-gesture-required"],
        )
        try:
            yield running
        finally:
            await running.close()


@pytest.fixture(scope="module")
def vendor() -> Iterator[RealtimeVendor]:
    """Run a vendor of a model that listens and speaks."""
    with realtime_vendor("I was sent {said} and answer aloud" + " and on" * 20) as running:
        yield running


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, vendor: RealtimeVendor) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    # The modules one by one: what a test imports is then the instance of the page.
    with running_product(
        folder, UAMP_MODEL_ALLOW_HOSTS="127.0.0.1:*", UAMP_BUNDLED_PAGES="0"
    ) as running:
        add_carol(running)
        running.run(SPEAKER.format(url=vendor.url, chat=running.chat_id))
        yield running


@pytest.mark.long
async def test_an_agent_joins_is_sent_speech_and_answers_all(
    speaking: Browser, product: Product, vendor: RealtimeVendor
) -> None:
    places = [(name, str(product.port)) for name in ("alice", "bob", "carol")]
    async with pages(speaking, product, *places) as (alice, bob, carol):
        await alice.get_by_test_id("call").click()
        await alice.get_by_test_id("call-everyone").click()
        await bob.get_by_test_id("accept").click()
        for page in (alice, bob):
            await page.wait_for_function(GETS_SOUND, arg=1)

        # The price is shown before the agent joins, and it joins only after that.
        await alice.get_by_test_id("choose-agent").click()
        await expect(alice.get_by_test_id("agent-terms")).to_have_text(
            "$0.10 per 1,000 audio output tokens — you pay."
        )
        assert await findings(alice) == []
        await alice.get_by_test_id("add-agent").click()
        agent, as_bob_sees = (page.get_by_test_id("call-agent") for page in (alice, bob))
        # Members outside the call see its participants, in the chat's header and in the list.
        await expect(carol.get_by_test_id("in-call")).to_have_text(
            ["In a call: alice, bob, and speaker"] * 2
        )
        assert await findings(carol) == []
        # An utterance leads to a paid answer, which waits for the host, in the call panel only.
        for place in (agent, as_bob_sees):
            await expect(place).to_have_attribute("data-state", "waits")
        assert vendor.responses == 0
        assert await findings(alice) == []
        await expect(alice.get_by_test_id("payment")).to_have_count(1)
        await alice.locator("agents-row").get_by_test_id("pay-always").click()

        await bob.wait_for_function(f"async () => (await ({LOUDNESS})()) > 0.05")
        for place in (agent, as_bob_sees):
            await expect(place).to_have_attribute("data-state", "speaks")
        # Members outside the call read the transcript and the answer.
        answer = carol.get_by_test_id("message").filter(has_text="I was sent a sound of")
        await expect(answer.first).to_be_visible()
        transcript_message = carol.get_by_test_id("message").filter(
            has_text="Said in the call by alice, bob"
        )
        # Speech from before the price was accepted may have been too short for a transcript.
        transcripts = transcript_message.get_by_test_id("transcript").filter(has_text="a sound of")
        await expect(transcripts.first).to_be_visible()

        # Speech interrupts an answer: the model is stopped, and the next answer follows.
        vendor.go_on.clear()
        before = vendor.responses
        await carol.get_by_text("Stopped by alice").first.wait_for()
        vendor.go_on.set()
        # Push-to-talk only: nothing said without the button is sent.
        await alice.get_by_test_id("hands-free").click()
        await expect(agent).to_have_attribute("data-state", "listens")
        assert vendor.responses > before
        response_count = vendor.responses
        await alice.get_by_test_id("talk").press(" ", delay=600)
        await expect(agent).to_have_attribute("data-state", "speaks")
        await expect(agent).to_have_attribute("data-state", "listens")
        assert vendor.responses == response_count + 1

        # Bob takes it over, and when he leaves, it leaves with him; the chat says why.
        await bob.get_by_test_id("take-over").click()
        await expect(alice.get_by_test_id("take-over")).to_be_visible()
        await expect(bob.get_by_test_id("talk")).to_be_visible()
        await bob.get_by_test_id("leave").click()
        await expect(agent).to_have_count(0)
        await expect(carol.get_by_text("speaker left the call with bob")).to_be_visible()
