"""Diagrams from Mermaid code: drawn on request, in a frame that can reach nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Locator, Page, Request

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

GOOD = "```mermaid\nflowchart LR\n  A[Alice asks] --> B{Paid?}\n  B -->|yes| C[Answer]\n```"
WRONG = "```mermaid\nflowchart LR\n  A -->\n```"
LONG = "```mermaid\nflowchart LR\n" + "A-->B;" * 4_000 + "\n```"
# Labels and links that would run or load something, and a directive that would allow them.
HOSTILE = """```mermaid
%%{init: {"securityLevel": "loose", "flowchart": {"htmlLabels": true},
"themeCSS": "svg { background: url(https://evil.example/css) }"}}%%
flowchart LR
  A["<img src=https://evil.example/a.png onerror=parent.document.title='run'>"] --> B
  B["<iframe src='https://evil.example/frame'></iframe><script>top.document.title='run'</script>"]
  click A href "javascript:parent.document.title='run'"
  click B call alert("run")
```"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def send_message(page: Page, text: str) -> Locator:
    """Write a text as the person; return its message once it is stored."""
    before = await page.get_by_test_id("message").count()
    await page.get_by_test_id("composer").fill(text)
    await page.get_by_test_id("send").click()
    await expect(page.get_by_test_id("message")).to_have_count(before + 1)
    return page.get_by_test_id("message").nth(before)


async def test_code_is_shown_as_a_diagram_and_as_code_again(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        urls: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        message = await send_message(page, GOOD)
        button = message.get_by_test_id("diagram-button")
        await expect(button).to_have_text("Show as diagram")
        # Nothing is loaded before the click.
        assert [url for url in urls if "mermaid" in url or "/diagram/" in url] == []
        await button.focus()
        await page.keyboard.press("Enter")
        frame = message.get_by_test_id("diagram")
        await expect(frame).to_have_class("diagram is-drawn")
        drawing = message.frame_locator("[data-testid=diagram]").locator("svg")
        await expect(drawing).to_contain_text("Alice asks")
        await expect(message.locator("pre")).to_be_hidden()
        box = await frame.bounding_box()
        assert box is not None
        assert 80 <= box["height"] <= 1_200
        assert await page.locator("#announcer").text_content() == "Diagram shown."
        await expect(button).to_have_text("Show code")
        await page.keyboard.press("Enter")
        await expect(frame).to_have_count(0)
        await expect(message.locator("pre")).to_be_visible()
        await expect(button).to_be_focused()
        other = await send_message(page, "```python\nprint(1)\n```")
        await expect(other.locator(".code-block")).to_have_count(1)
        await expect(other.get_by_test_id("diagram-button")).to_have_count(0)
        # The beginning of a folded message is a different diagram; all of this one is too long.
        long = await send_message(page, LONG)
        await long.get_by_test_id("diagram-button").click()
        await expect(long.get_by_test_id("diagram-problem")).to_contain_text("Show all of the")
        await long.get_by_test_id("show-all").click()
        await expect(long.get_by_test_id("show-all")).to_have_count(0)
        await expect(long.get_by_test_id("diagram-button")).to_have_count(0)
        no_complaints(page)


@pytest.mark.long
async def test_what_cannot_be_drawn_stays_code_and_says_why(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        message = await send_message(page, WRONG)
        await message.get_by_test_id("diagram-button").click()
        problem = message.get_by_test_id("diagram-problem")
        await expect(problem).to_contain_text("Couldn't draw the diagram: Parse error")
        await expect(message.get_by_test_id("diagram")).to_have_count(0)
        await expect(message.locator("pre")).to_be_visible()
        no_complaints(page)


async def test_a_hostile_diagram_runs_nothing_and_calls_no_one(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        requests: list[Request] = []

        def note(request: Request) -> None:
            requests.append(request)

        page.on("request", note)
        message = await send_message(page, HOSTILE)
        await message.get_by_test_id("diagram-button").click()
        await expect(message.locator(".diagram.is-drawn")).to_have_count(1)
        for node in await message.frame_locator("[data-testid=diagram]").locator("g.node").all():
            await node.click(force=True)
        await page.wait_for_timeout(500)
        assert "run" not in await page.title()
        # The drawing contains the image, but the frame's policy refuses to load it.
        assert {request.failure for request in requests if "evil" in request.url} == {"csp"}
        assert [frame.url for frame in page.frames if "evil" in frame.url] == []


@pytest.mark.long
async def test_the_frame_of_a_diagram_reaches_nothing(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        message = await send_message(page, GOOD)
        await message.get_by_test_id("diagram-button").click()
        drawing = message.frame_locator("[data-testid=diagram]").locator("svg")
        await expect(drawing).to_contain_text("Answer")
        for reach in (
            "() => document.cookie",
            "() => localStorage.length",
            "() => parent.document.title",
            "() => fetch('/api/v1/me')",
            "() => fetch('https://evil.example/')",
        ):
            tried = f"try {{ await ({reach})(); return 'reached' }} catch (error) {{ return '' }}"
            result = await drawing.evaluate(f"async () => {{ {tried} }}")
            assert result != "reached", reach
