"""The contents of messages: Markdown, formulas, code, files, tools, and attempts to break a page.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from chat_app.markdown import render_here
from tests.journeys.attachments import photo
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    write,
)
from tests.markdown_corpus import SAMPLES, XSS_CORPUS, mixed_texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MIXED_TEXTS = 1_500
# The server's and the browser's rendering of each text, without code highlighting, and the
# rendering of a text that grew piece by piece.
COMPARE = """async (pairs) => {
  const { sanitised } = await import("/static/chat/markdown/drawing.js");
  const { blocksOf } = await import("/static/chat/markdown/parser.js");
  const { grown } = await import("/static/chat/markdown/tail.js");
  const plain = (root) => {
    for (const code of root.querySelectorAll("pre > code")) code.textContent = code.textContent;
    root.normalize();
    // What a browser shows as one space is one: the parsers differ in spaces at the ends of lines.
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const { currentNode: node } = texts;
      if (node.parentElement?.closest("pre")) continue;
      node.data = node.data.replace(/\\s+/g, " ");
      if (node.nextSibling?.localName === "br") node.data = node.data.trimEnd();
    }
    const box = document.createElement("div");
    box.append(root);
    return box;
  };
  const htmlOf = (blocks) => blocks.map(({ html }) => html).join("").trim();
  const pieces = (text) => {
    const blocks = [];
    const env = {};
    let from = 0;
    for (let to = 5; to < text.length; to += 5) {
      const { finished, length } = grown(text.slice(from, to), true, env);
      blocks.push(...finished);
      from += length;
    }
    const { finished, last } = grown(text.slice(from), false, env);
    return [...blocks, ...finished, ...last];
  };
  const different = [];
  for (const [text, html] of pairs) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const theirs = plain(template.content);
    const ours = plain(sanitised(htmlOf(blocksOf(text))));
    const browser = ours.innerHTML;
    if (!ours.isEqualNode(theirs)) different.push({ text, browser, server: theirs.innerHTML });
    // A definition may come after what it defines.
    if (text.includes("]:") || text.includes("\\r")) continue;
    const grew = plain(sanitised(htmlOf(pieces(text))));
    if (!grew.isEqualNode(ours)) different.push({ text, browser, grown: grew.innerHTML });
  }
  return different;
}"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), has_workers=True) as running:
        yield running


async def test_the_browser_draws_a_text_as_the_server_does(
    product: Product, chromium: Browser
) -> None:
    texts = [*SAMPLES, *XSS_CORPUS, *mixed_texts(MIXED_TEXTS)]
    pairs = [[text, render_here(text.encode()).decode()] for text in texts]
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        different = await page.evaluate(COMPARE, pairs)
        assert different == []
        no_complaints(page)


@pytest.mark.long
async def test_all_members_see_what_an_agent_keeps_for_the_chat(
    product: Product, chromium: Browser
) -> None:
    with product.api("alice") as client:
        path = f"/api/v1/chats/{product.chat_id}/participants"
        client.post(path, json={"agent": "checklist"}).raise_for_status()
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await expect(bob.get_by_test_id("shared-state")).to_be_hidden()
        await write(alice, "@checklist <b>milk</b>")
        for page in (alice, bob):
            panel = page.get_by_test_id("shared-state")
            await expect(panel).to_contain_text("items: 1")
            await expect(panel).to_contain_text("by checklist")
        await bob.get_by_text("items: 1").click()
        items = bob.get_by_test_id("shared-state").get_by_role("listitem")
        await expect(items).to_have_text(["<b>milk</b>"])
        await write(alice, "@checklist tea")
        await expect(items).to_have_text(["<b>milk</b>", "tea"])
        # The call shows how long it took, live and stored.
        took = re.compile(r"done · \d+\.\d s")
        await expect(alice.get_by_test_id("live-response")).to_have_count(0)
        await expect(alice.locator(".tool-status").last).to_have_text(took)
        await alice.reload()
        await expect(alice.get_by_test_id("shared-state")).to_contain_text("items: 2")
        await expect(alice.locator(".tool-status").last).to_have_text(took)
        no_complaints(alice, bob)


async def send_files(page: Page, *files: Path) -> None:
    """Send files in one message, and wait until it is stored."""
    messages = page.get_by_test_id("message")
    count = await messages.count()
    await page.get_by_test_id("file-input").set_input_files(files)
    attached = page.get_by_test_id("attachment")
    await expect(attached).to_have_count(len(files))
    await expect(attached.get_by_role("progressbar")).to_have_count(0)
    await write(page, "Look")
    await expect(messages).to_have_count(count + 1)


async def test_pictures_and_files_are_looked_at_in_the_page(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    table = tmp_path / "sums.csv"
    table.write_text('name,sum\n"Ada, L.",12\n<b>x</b>,=1+1\n')
    evil = tmp_path / "page.html"
    evil.write_text("<script>document.title = 'run'</script><img src=x onerror=alert(1)>")
    drawing = tmp_path / "drawing.svg"
    drawing.write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    not_a_picture = tmp_path / "fake.png"
    not_a_picture.write_text("no picture")
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        first, second = (photo(tmp_path / f"{name}.png", 60, 40) for name in ("one", "two"))
        await send_files(page, first, second, table, evil, drawing)
        pictures = page.locator("a.media-image")
        await expect(pictures).to_have_count(2)
        viewer = page.get_by_test_id("viewer")
        await pictures.first.click()
        await expect(viewer).to_contain_text("1 of 2")
        await page.keyboard.press("ArrowRight")
        await expect(viewer).to_contain_text("2 of 2")
        await viewer.get_by_role("button", name="Zoom in").click()
        await expect(viewer.locator("img.is-large")).to_have_count(1)
        await page.keyboard.press("0")
        await page.keyboard.press("ArrowLeft")
        await expect(viewer).to_contain_text("1 of 2")
        source = await pictures.first.get_attribute("href")
        await expect(viewer.get_by_role("link", name="Download")).to_have_attribute("href", source)
        await page.keyboard.press("Escape")
        await expect(viewer).to_be_hidden()
        await expect(pictures.first).to_be_focused()

        await page.get_by_label("Preview sums.csv").click()
        await expect(viewer.get_by_role("columnheader")).to_have_text(["name", "sum"])
        cells = ["Ada, L.", "12", "<b>x</b>", "=1+1"]
        await expect(viewer.get_by_role("cell")).to_have_text(cells)
        await page.keyboard.press("Escape")
        # Pages and drawings are shown as source, and run nothing.
        for path in (evil, drawing):
            await page.get_by_label(f"Preview {path.name}").click()
            await expect(viewer.locator("pre")).to_have_text(path.read_text())
            await page.keyboard.press("Escape")
        assert await page.title() != "run"

        await page.get_by_test_id("file-input").set_input_files(not_a_picture)
        await expect(page.get_by_test_id("attachment")).to_contain_text("Upload failed")
        no_complaints(page)


@pytest.mark.long
async def test_no_text_breaks_the_page(product: Product, chromium: Browser) -> None:
    pasted = "\n\n".join(f"line {number} " + "x" * 80 for number in range(1_000))
    async with browser(chromium) as running:
        context = await running.new_context(viewport={"width": 360, "height": 740})
        urls: list[str] = []
        dialogs: list[str] = []
        page = await sign_in(context, product, "alice")
        page.on("request", lambda request: urls.append(request.url))
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        bodies = page.get_by_test_id("message-body")
        # The whole corpus, message by message, over the socket and from the history.
        for at in range(0, len(XSS_CORPUS), 10):
            await write(page, f"corpus {at}\n\n" + "\n\n".join(XSS_CORPUS[at : at + 10]))
            await expect(bodies.last).to_contain_text(f"corpus {at}")
        await write(page, "👋🏽" * 1_000)
        await expect(bodies.last).to_have_text("👋🏽" * 1_000)
        await write(page, "W" * 3_000 + " \u202eright to left\u202c")
        await expect(bodies.last).to_contain_text("right to left")
        await write(page, pasted)
        await expect(bodies.last).to_contain_text("line 1 ")
        show_all = bodies.last.get_by_test_id("show-all")
        await expect(show_all).to_be_visible()
        text = await bodies.last.text_content()
        assert text is not None
        assert "line 999" not in text
        await show_all.click()
        await expect(bodies.last.locator("p")).to_have_count(1_000)
        await expect(bodies.last.get_by_test_id("show-all")).to_have_count(0)
        await page.reload()
        await expect(bodies.last).to_contain_text("line 1 ")
        # Nothing is wider than the screen, nothing ran, and no other host was contacted.
        log = page.locator(".log")
        assert await log.evaluate("log => log.scrollWidth <= log.clientWidth")
        assert dialogs == []
        assert [url for url in urls if not url.startswith(product.url)] == []
        assert [url for url in urls if url.endswith("/render")] == []
        no_complaints(page)


@pytest.mark.long
async def test_a_text_too_long_for_a_message_is_attached_whole(
    product: Product, chromium: Browser
) -> None:
    pasted = "line\n" * 40_000
    paste = """(field, text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", text);
      const paste = { clipboardData, bubbles: true, cancelable: true };
      return field.dispatchEvent(new ClipboardEvent("paste", paste));
    }"""
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        composer = page.get_by_test_id("composer")
        # Text that fits is pasted by the browser itself.
        assert await composer.evaluate(paste, "short")
        assert not await composer.evaluate(paste, pasted)
        attached = page.get_by_test_id("attachment")
        await expect(attached).to_contain_text("pasted-text.txt")
        await expect(page.locator(".composer-note")).to_contain_text(
            "so it was attached as a file."
        )
        await expect(attached.get_by_role("progressbar")).to_have_count(0)
        await write(page, "the whole log")
        await expect(page.get_by_test_id("message").last).to_contain_text("the whole log")
        (stored,) = [
            item for item in product.messages()[-1]["content_items"] if item["type"] == "file"
        ]
        with product.api("alice") as client:
            file = client.get(f"/api/v1/contents/{stored['content_id']}").raise_for_status().json()
        assert (file["filename"], file["size_bytes"]) == ("pasted-text.txt", len(pasted)), file
        no_complaints(page)
