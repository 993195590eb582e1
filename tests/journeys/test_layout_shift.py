"""Nothing that a person reads moves while an answer grows, nor when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import WORK_MS
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STEADY: Final = """
from agents_app.models import Agent
from chat_app.models import Participant
agent = Agent.objects.create(name="steady", is_public=True,
    options={{"script": "echo", "delay": 0.015}})
Participant.objects.create(chat_id={chat!r}, agent=agent)
"""
FORMULA: Final = "$$\\bar{c} = \\frac{1}{n}\\sum_{i=1}^{n} c_i$$"
ANSWER: Final = f"""## Plan

Some **bold** words, `code` and a [link](https://example.org) that go on until the line is full.

| What | Cost |
| --- | ---: |
| Train | $42.00 |
| Museum | $18.50 |

- one
- [ ] two

```python
def share(total: int, people: int) -> int:
    return total // people
```

{FORMULA}

> The museum closes at five.

{" ".join(f"word{number}" for number in range(120))}"""
# The sum of all layout shifts without user input, from the first words of an answer on. Web Vitals
# considers 0.1 the limit of a good page.
WATCH: Final = """() => {
  window.begun = Infinity;
  window.shifted = 0;
  const look = () => {
    const body = "[data-testid=live-response] [data-testid=message-body]";
    if (document.querySelector(body)?.textContent.trim()) window.begun = performance.now();
    else requestAnimationFrame(look);
  };
  look();
  window.count = (entries) => {
    for (const { value, startTime, hadRecentInput } of entries) {
      if (!hadRecentInput && startTime > window.begun) window.shifted += value;
    }
  };
  window.shifts = new PerformanceObserver((list) => window.count(list.getEntries()));
  window.shifts.observe({ type: "layout-shift" });
}"""
SHIFTED: Final = """async () => {
  // What came last is painted.
  for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
  await new Promise((go) => setTimeout(go));
  window.count(window.shifts.takeRecords());
  return window.shifted;
}"""
DRAWS_FORMULAS: Final = """() =>
  document.querySelector("link[href$='/katex.css']")?.sheet
  && [...document.fonts].some(({ family, status }) => /KaTeX/.test(family) && status === "loaded")
"""
# The columns of a growing table settle on their widths, and the cursor at the end of the text
# moves.
MAX_LAYOUT_SHIFT: Final = 0.005


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        running.run(STEADY.format(chat=running.chat_id))
        yield running


@pytest.mark.long
async def test_nothing_moves_while_an_answer_grows_and_ends(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        phone = await running.new_context(viewport={"width": 390, "height": 844})
        readers = [await sign_in(await running.new_context(), product, "bob")]
        readers.append(await sign_in(phone, product, "bob"))
        for page in readers:
            # The code that draws formulas is loaded before the first formula arrives.
            await page.wait_for_function(DRAWS_FORMULAS)
            await page.evaluate(WATCH)
        await write(alice, f"@steady {ANSWER}")
        for page in readers:
            await expect(page.locator(".message.from-agent").last).to_contain_text(
                "word119", timeout=WORK_MS
            )
            await expect(page.get_by_test_id("live-response")).to_have_count(0)
            # Other readers appear after the answer's end.
            readers_of_it = page.locator(".message.from-agent").last.locator(".readers")
            await expect(readers_of_it).to_contain_text("Read by alice")
            assert await page.evaluate("Number.isFinite(window.begun)")
            assert await page.evaluate(SHIFTED) < MAX_LAYOUT_SHIFT
        no_complaints(alice, *readers)
