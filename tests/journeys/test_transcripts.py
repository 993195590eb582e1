"""Members read transcripts of audio, if the operator has configured a server for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.chat_app.transcripts.test_transcripts import TranscriptionServer, sound
from tests.http_server import serving
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# A worker starts, and the page polls at growing intervals.
READING_MS = 120_000


@pytest.fixture(scope="module")
def server() -> Iterator[TranscriptionServer]:
    with serving(TranscriptionServer()) as running:
        yield running


@pytest.fixture(scope="module")
def product(
    tmp_path_factory: pytest.TempPathFactory, server: TranscriptionServer
) -> Iterator[Product]:
    with running_product(
        tmp_path_factory.mktemp("product"),
        has_workers=True,
        UAMP_TRANSCRIPTION_URL=f"{server.origin}/v1",
    ) as running:
        yield running


@pytest.mark.long
async def test_a_sound_has_a_transcript_that_a_worker_asked_for(
    product: Product, chromium: Browser, server: TranscriptionServer
) -> None:
    async with browser(chromium) as running:
        pages = [
            await sign_in(await running.new_context(), product, name) for name in ("alice", "bob")
        ]
        note = {"name": "note.wav", "mimeType": "audio/wav", "buffer": sound()}
        await pages[0].get_by_test_id("file-input").set_input_files(note)  # type: ignore[arg-type]  # a FilePayload
        attached = pages[0].get_by_test_id("attachment")
        await expect(attached).to_have_count(1)
        await expect(attached.locator(".upload")).to_have_count(0)
        await write(pages[0], "Listen")
        for page in pages:
            await expect(page.get_by_test_id("transcript")).to_contain_text(
                "Hello there.", timeout=READING_MS
            )
        assert len(server.received) == 1
        no_complaints(*pages)
