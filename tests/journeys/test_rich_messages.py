"""What is in messages: markdown, formulas, code, files, tools, and what is sent to break a page.

Everything here runs against the product as `make run` starts it: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from chat_app.markdown import render_here
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

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MIXED_TEXTS = 1_500
# What the server and the browser make of each text, without the colours of code; and what a text
# that grew piece by piece has become.
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
    with running_product(tmp_path_factory.mktemp("product")) as running:
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
        kept = bob.get_by_test_id("shared-state").get_by_role("listitem")
        await expect(kept).to_have_text(["<b>milk</b>"])
        await write(alice, "@checklist tea")
        await expect(kept).to_have_text(["<b>milk</b>", "tea"])
        # The call says how long it took, live and stored.
        took = re.compile(r"done · \d+\.\d s")
        await expect(alice.get_by_test_id("live-response")).to_have_count(0)
        await expect(alice.locator(".tool-status").last).to_have_text(took)
        await alice.reload()
        await expect(alice.get_by_test_id("shared-state")).to_contain_text("items: 2")
        await expect(alice.locator(".tool-status").last).to_have_text(took)
        no_complaints(alice, bob)
