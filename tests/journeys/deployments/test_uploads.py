"""Files: chosen, dragged and pasted, refused with a reason, taken back, and shown to the others."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import photo
from tests.journeys.deployments.chats import MAX_BYTES, new_chat
from tests.journeys.product import Product, browser, no_complaints, sign_in, write

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

GIVEN = """([name, type, data]) => {
  const given = new DataTransfer();
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  given.items.add(new File([bytes], name, { type }));
  return given;
}"""
# What dragover and drop say of it: the page takes the file, else the browser opens it.
DROP = f"""(field, file) => {{
  const dataTransfer = ({GIVEN})(file);
  const taken = (type) => !field.dispatchEvent(
    new DragEvent(type, {{ dataTransfer, bubbles: true, cancelable: true }}),
  );
  return [taken("dragover"), document.querySelectorAll(".is-dropping").length, taken("drop")];
}}"""
PASTE = f"""(field, file) => !field.dispatchEvent(new ClipboardEvent(
  "paste", {{ clipboardData: ({GIVEN})(file), bubbles: true, cancelable: true }},
))"""
LOADED = "image => image.decode().then(() => image.naturalWidth)"
HTML = "<title>mine</title><script>document.title = 'ran'; alert(1)</script>"
SVG = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def picture_fields(path: Path) -> list[str]:
    """Return a picture as the page is given it: name, type, data in base64."""
    return [path.name, "image/png", base64.b64encode(path.read_bytes()).decode()]


async def attach_in_three_ways(alice: Page, folder: Path) -> None:
    """Choose a picture with the button, drag one onto the chat, and paste one."""
    attached = alice.get_by_test_id("attachment")
    chosen, dragged, pasted = (
        photo(folder / f"{name}.png", 60, 40) for name in ("chosen", "dragged", "pasted")
    )
    async with alice.expect_file_chooser() as chooser:
        await alice.get_by_role("button", name="Attach files").click()
    await (await chooser.value).set_files(chosen)
    await expect(attached).to_have_count(1)
    composer = alice.get_by_test_id("composer")
    log = alice.locator("chat-view .log")
    assert await log.evaluate(DROP, picture_fields(dragged)) == [True, 1, True]
    await expect(alice.locator(".is-dropping")).to_have_count(0)
    await expect(attached).to_have_count(2)
    assert await composer.evaluate(PASTE, picture_fields(pasted))
    await expect(attached).to_have_count(3)
    await expect(attached.get_by_role("progressbar")).to_have_count(0)
    for number, path in enumerate((chosen, dragged, pasted)):
        await expect(attached.nth(number)).to_contain_text(path.name)
        assert await attached.nth(number).locator("img").evaluate(LOADED) == 60


async def refused(alice: Page, product: Product, folder: Path) -> None:
    """Attach what is too big and what is not what it says: both are refused in words."""
    large = folder / "large.bin"
    large.write_bytes(b"\0" * (MAX_BYTES + 1))
    picker = alice.get_by_test_id("file-input")
    await picker.set_input_files(large)
    note = alice.locator("chat-view .composer-note")
    await expect(note).to_have_text("large.bin is too large (max. 300 kB).")
    await expect(alice.get_by_test_id("attachment")).to_have_count(3)
    # A client that does not look at the size is refused by the server, at one byte too many.
    with product.api("alice") as client:
        for size, status in ((MAX_BYTES, 201), (MAX_BYTES + 1, 413)):
            files = {"file": ("large.bin", b"\0" * size, "application/octet-stream")}
            assert client.post("/api/v1/contents", files=files).status_code == status
    wrong = folder / "wrong.png"
    wrong.write_text("<script>alert(1)</script>")
    await picker.set_input_files(wrong)
    failed = alice.get_by_test_id("attachment").filter(has_text="wrong.png")
    await expect(failed).to_contain_text("Upload failed. The picture cannot be read")
    # Nothing is drawn of it, not the browser's sign of a broken picture either.
    await expect(failed.locator("img")).to_have_count(0)
    for name in ("wrong.png", "dragged.png"):
        await alice.get_by_role("button", name=f"Remove {name}").click()
    await expect(alice.get_by_test_id("attachment")).to_have_count(2)


async def test_files_are_attached_in_every_way_and_refused_in_words(
    deployment: Product, chromium: Browser, tmp_path: Path
) -> None:
    chat_id = new_chat(deployment, "Pictures")
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        await attach_in_three_ways(alice, tmp_path)
        await refused(alice, deployment, tmp_path)
        await write(alice, "Two of three")
        for page in (alice, bob):
            message = page.get_by_test_id("message").filter(has_text="Two of three")
            pictures = message.locator("a.media-image")
            await expect(pictures).to_have_count(2)
            for number in range(2):
                assert await pictures.nth(number).locator("img").evaluate(LOADED) == 60
        no_complaints(alice, bob)


@pytest.mark.long
async def test_pages_and_drawings_that_are_uploaded_run_nothing(
    deployment: Product, chromium: Browser, tmp_path: Path
) -> None:
    chat_id = new_chat(deployment, "Pages")
    page_file, drawing = tmp_path / "page.html", tmp_path / "drawing.svg"
    page_file.write_text(HTML)
    drawing.write_text(SVG)
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        alone = await bob.context.new_page()
        await alone.goto(f"{deployment.url}/account")
        dialogs: list[str] = []
        bob.context.on("dialog", lambda dialog: dialogs.append(dialog.message))
        await alice.get_by_test_id("file-input").set_input_files([page_file, drawing])
        await expect(alice.get_by_test_id("attachment")).to_have_count(2)
        await expect(alice.get_by_role("progressbar")).to_have_count(0)
        await write(alice, "Look inside")
        for path, text in ((page_file, HTML), (drawing, SVG)):
            chip = bob.get_by_label(f"Preview {path.name}")
            # As its source, in the page.
            await chip.click()
            await expect(bob.get_by_test_id("viewer").locator("pre")).to_have_text(text)
            await bob.keyboard.press("Escape")
            # On its own it is saved, not shown; what a browser shows after all runs nothing.
            address = str(await chip.evaluate("chip => chip.href"))
            async with alone.expect_download() as saved:
                await alone.evaluate("address => { location.href = address; }", address)
            assert (await (await saved.value).path()).read_text() == text
            answer = await alone.request.get(address)
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"].startswith("attachment")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert dialogs == []
        no_complaints(alice, bob)
