"""The chat page in a real browser: how fast it opens, and what a fast answer costs it.

A chat is opened in a new browser context, next to one with 100 messages; measured is the time from
the navigation until the last messages are drawn and a typed key is shown. Then an answer streams in
at 200 deltas a second while someone types five keys a second; measured are the frames drawn, the
delay from a key to the next frame, the number of elements, and the heap after garbage collection.
Chromium runs headless and without a GPU, on the same machine as the server. `--seconds` is the
length of the stream.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks import MODEL_AGENT, results, servers
from benchmarks.rounds import Spread, ratio, spread
from tests import services
from tests.journeys.product import Product, browser, running_browser, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.async_api import Browser, CDPSession, Page

SMALL: Final = 100
PER_SECOND: Final = 200
KEY_SECONDS: Final = 0.2
START_SECONDS: Final = 60
MS: Final = 1000
# Runs before the page loads: records when the newest messages and the input field are drawn.
WATCH_OPENING: Final = """
const look = () => {
  const field = document.querySelector("chat-view textarea");
  if (field && document.querySelector("chat-message")) window.drawnAt = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
WATCH_STREAM: Final = """() => {
  window.frames = [];
  window.keys = [];
  const frame = (at) => {
    window.frames.push(at);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  addEventListener("keydown", ({ timeStamp }) => requestAnimationFrame(() => {
    // After the frame was painted.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => window.keys.push(performance.now() - timeStamp);
    port2.postMessage(0);
  }), { capture: true });
}"""
LIVE: Final = "[data-testid=live-response] [data-testid=message-body]"
WORDS_SHOWN: Final = (
    f"() => (document.querySelector('{LIVE}')?.textContent.match(/word/g) ?? []).length"
)
WRITE_CHAT: Final = """
from tests.journeys.long_chat import write_long_chat
print(write_long_chat({count}, "of_{count}"), end="")
"""
ADD_AGENT: Final = """
from agents_app.models import Agent
from chat_app.models import Participant
agent, _ = Agent.objects.get_or_create(name={name!r}, defaults={{"is_public": True,
    "provider": "openai_compat", "model": "stub", "options": {{"base_url": {url!r}}}}})
Participant.objects.create(chat_id={chat!r}, agent=agent)
"""


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def _weight(keys: CDPSession) -> tuple[float, float]:
    """Return the page's heap in MiB after garbage collection, and its number of DOM nodes."""
    await keys.send("HeapProfiler.collectGarbage")
    metrics = (await keys.send("Performance.getMetrics"))["metrics"]
    values = {metric["name"]: metric["value"] for metric in metrics}
    return values["JSHeapUsedSize"] / 2**20, values["Nodes"]


async def open_chat(running: Browser, product: Product, chat_id: str) -> tuple[float, float, float]:
    """Open a chat; return the time in ms until it is usable, and its heap and nodes then."""
    async with browser(running):
        context = await running.new_context()
        await context.add_init_script(WATCH_OPENING)
        page = await sign_in(context, product, "alice", chat_id)
        await page.goto("about:blank")
        await page.goto(f"{product.url}/chats/{chat_id}", wait_until="commit")
        await page.wait_for_function("() => window.drawnAt")
        await page.evaluate(WATCH_STREAM)
        start = await page.evaluate("performance.now()")
        await page.get_by_test_id("composer").press("a")
        await page.wait_for_function("() => window.keys.length")
        typed = await page.evaluate("window.keys[0]")
        drawn = await page.evaluate("window.drawnAt")
        keys = await context.new_cdp_session(page)
        await keys.send("Performance.enable")
        heap, nodes = await _weight(keys)
        await page.get_by_test_id("composer").fill("")
        return min(drawn, start) + typed, heap, nodes


async def stream_in(page: Page, seconds: float) -> dict[str, Any]:
    """Ask the agent and type until the answer ends; return the figures."""
    keys = await page.context.new_cdp_session(page)
    await keys.send("Performance.enable")
    heap, nodes = await _weight(keys)
    await write(page, f"@{MODEL_AGENT} count")
    await page.wait_for_function(f"() => ({WORDS_SHOWN})() > 20", timeout=START_SECONDS * MS)
    await page.evaluate(WATCH_STREAM)
    loop = asyncio.get_running_loop()
    start, before, half = loop.time(), await page.evaluate(WORDS_SHOWN), 0.0
    max_elements = 0
    while loop.time() < start + seconds:
        await page.keyboard.press("a")
        max_elements = max(
            max_elements, await page.evaluate("document.getElementsByTagName('*').length")
        )
        if not half and loop.time() > start + seconds / 2:
            half = (await _weight(keys))[0]
        await asyncio.sleep(KEY_SECONDS)
    words, elapsed = await page.evaluate(WORDS_SHOWN) - before, loop.time() - start
    frames = await page.evaluate("window.frames")
    gaps = [later - at for at, later in pairwise(frames)]
    typed = await page.evaluate("window.keys")
    heap_after, nodes_after = await _weight(keys)
    await page.get_by_test_id("composer").fill("")
    return {
        "words shown a second": words / elapsed,
        "frames a second": MS * len(gaps) / sum(gaps),
        "gap between frames, p95, ms": _percentile(gaps, 95),
        "gap between frames, most, ms": max(gaps),
        "key to frame, p50, ms": _percentile(typed, 50),
        "key to frame, p95, ms": _percentile(typed, 95),
        "elements, most": max_elements,
        "DOM nodes before": nodes,
        "DOM nodes after": nodes_after,
        "heap before, MiB": heap,
        "heap at half, MiB": half,
        "heap after, MiB": heap_after,
    }


async def measured(options: Any, product: Product, model_url: str) -> dict[str, tuple[Spread, str]]:
    """Measure on a running product and print the results."""
    chats = {
        count: product.run(WRITE_CHAT.format(count=count)) for count in (SMALL, options.messages)
    }
    large = chats[options.messages]
    product.run(ADD_AGENT.format(name=MODEL_AGENT, url=model_url, chat=large))
    path = services.chromium()
    if path is None:
        raise LookupError("no Chromium: set CHROMIUM")
    async with running_browser(path) as running:
        await open_chat(running, product, chats[SMALL])
        openings: dict[int, list[tuple[float, float, float]]] = {count: [] for count in chats}
        for number in range(options.rounds):
            order = list(chats) if number % 2 else list(reversed(chats))
            for count in order:
                openings[count].append(await open_chat(running, product, chats[count]))
        async with browser(running):
            page = await sign_in(await running.new_context(), product, "alice", large)
            streamed = await stream_in(page, options.seconds)
    times = {count: [row[0] for row in rows] for count, rows in openings.items()}
    figures = {
        f"open {count} messages, ms": (spread(values), "ms") for count, values in times.items()
    }
    figures["open, large / small"] = (ratio(times[options.messages], times[SMALL]), "x")
    for place, (name, unit) in enumerate((("heap, MiB", "MiB"), ("DOM nodes", "")), start=1):
        values = [row[place] for row in openings[options.messages]]
        figures[f"opened, {name}"] = (spread(values), unit)
    figures |= {name: (spread([value]), "") for name, value in streamed.items()}
    for name, (figure, _) in figures.items():
        print(f"{name:36}{figure!s:>28}")
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = results.parser("browser", __doc__)
    parser.add_argument("--messages", type=int, default=100_000, metavar="N", help="(100,000)")
    parser.set_defaults(seconds=60.0)
    options = parser.parse_args(arguments)
    words = int((options.seconds + START_SECONDS) * PER_SECOND)
    stub = servers.of_stub(
        "model", {"MODEL_WORDS": str(words), "MODEL_PAUSE_MS": str(MS / PER_SECOND)}
    )
    with results.Results("browser", options.results) as report, ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="uamp-bench-"))
        model = stack.enter_context(servers.serving(stub))
        settings = {**servers.NO_LIMITS, **results.settings_of(options)}
        product = Product(Path(folder), services.free_port(), settings, server="uvicorn")
        product.prepare()
        stack.callback(product.stop)
        stack.callback(product.close)
        product.start()
        url = f"http://127.0.0.1:{model.port}/v1"
        for name, (figure, unit) in asyncio.run(measured(options, product, url)).items():
            report.add(f"browser.{name}", figure, unit)


if __name__ == "__main__":
    main()
