"""The first visit of a chat, and the next one, on a slow phone and on a desktop.

A chat of 48 messages is opened in a new browser context, and once more with what that context kept.
The phone is a window of 390x844, a CPU at a quarter of its speed and a network of 1.6 Mbit/s down,
750 kbit/s up and 150 ms a request, all of them emulated by Chromium; the desktop has no limits.

composer     seconds until the field can be written in and the socket is open
FCP, LCP     seconds until something, and until the largest thing, was painted
CLS          how far things moved that were there already (good pages stay below 0.1)
TBT          seconds for which scripts kept the page from answering, beyond 50 ms each
requests, KB  that went over the network until the composer, and in all until it was quiet

`--set UAMP_BUNDLED_PAGES=0` measures the sources; `--pause 61` lets expire what is kept for a
minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks import results, servers
from benchmarks.rounds import spread
from tests import services
from tests.journeys.product import SESSION_COOKIE, Product, browser, running_browser, sign_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from playwright.async_api import Browser, BrowserContext, Page

MESSAGES: Final = 48
TEXT: Final = "Message {number}. It has **some** words, so that it takes two lines on a phone."
READY_MS: Final = 120_000
# Longer than the page waits for a moment without work.
QUIET_SECONDS: Final = 4.0
MBIT: Final = 125_000
PHONE: Final = {"width": 390, "height": 844}
DESKTOP: Final = {"width": 1280, "height": 800}
CPU: Final = 4
NETWORK: Final = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1.6 * MBIT,
    "uploadThroughput": 0.75 * MBIT,
}
# Runs before the page. A socket is seen only by a class that takes the place of the browser's.
WATCH: Final = """
window.seen = { composer: 0, fcp: 0, lcp: 0, shifts: [], blocked: 0 };
const kinds = {
  paint: ({ name, startTime }) => {
    if (name === "first-contentful-paint") seen.fcp = startTime;
  },
  "largest-contentful-paint": ({ startTime }) => { seen.lcp = startTime; },
  "layout-shift": ({ hadRecentInput, startTime, value }) => {
    if (!hadRecentInput) seen.shifts.push([startTime, value]);
  },
  longtask: ({ duration }) => { seen.blocked += duration - 50; },
};
for (const [type, take] of Object.entries(kinds)) {
  const observer = new PerformanceObserver((list) => list.getEntries().forEach(take));
  observer.observe({ type, buffered: true });
}
let isOpen = false;
window.WebSocket = class extends WebSocket {
  constructor(...options) {
    super(...options);
    this.addEventListener("open", () => { isOpen = true; });
  }
};
const look = () => {
  const field = document.querySelector("chat-composer textarea");
  const isUsable = isOpen && field && !field.disabled && field.checkVisibility();
  if (isUsable) seen.composer = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


@dataclass
class Traffic:
    """The requests of a page that went over the network, and their bytes."""

    begun: float = 0.0
    sent: dict[str, float] = field(default_factory=dict)
    received: list[tuple[float, float]] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, page: Page) -> None:
        """Count from now on."""
        session = await page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._on_request)
        session.on("Network.requestServedFromCache", self._on_kept)
        session.on("Network.responseReceived", self._on_response)
        session.on("Network.loadingFinished", self._on_end)
        await session.send("Network.enable")

    async def quiet(self) -> None:
        """Wait until nothing has come for a while."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.moved.clear()
                await asyncio.wait_for(self.moved.wait(), QUIET_SECONDS)

    def until(self, seconds: float) -> tuple[float, float]:
        """Return the number of requests sent, and of KB received, in the first seconds."""
        end = self.begun + seconds
        return (
            sum(at < end for at in self.sent.values()),
            sum(size for at, size in self.received if at < end) / 1000,
        )

    def _on_request(self, event: dict[str, Any]) -> None:
        self.moved.set()
        self.begun = self.begun or event["timestamp"]
        if event["request"]["url"].startswith("http"):
            self.sent[event["requestId"]] = event["timestamp"]

    def _on_kept(self, event: dict[str, Any]) -> None:
        self.sent.pop(event["requestId"], None)

    def _on_response(self, event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            self.sent.pop(event["requestId"], None)

    def _on_end(self, event: dict[str, Any]) -> None:
        self.moved.set()
        self.received.append((event["timestamp"], event["encodedDataLength"]))


def worst_window(shifts: Sequence[tuple[float, float]]) -> float:
    """Return the CLS: the greatest sum of shifts within five seconds, none a second apart."""
    worst = total = first = 0.0
    for (before, _), (at, value) in pairwise([(float("-inf"), 0.0), *shifts]):
        if at - before > 1000 or at - first > 5000:
            total, first = 0.0, at
        total += value
        worst = max(worst, total)
    return worst


async def visit(context: BrowserContext, url: str, *, is_slow: bool) -> dict[str, float]:
    """Open a chat in a new page; return the figures."""
    page = await context.new_page()
    traffic = Traffic()
    await traffic.watch(page)
    if is_slow:
        session = await context.new_cdp_session(page)
        await session.send("Network.enable")
        await session.send("Network.emulateNetworkConditions", NETWORK)
        await session.send("Emulation.setCPUThrottlingRate", {"rate": CPU})
    await page.goto(url, wait_until="commit", timeout=READY_MS)
    await page.wait_for_function("() => window.seen?.composer", timeout=READY_MS)
    await traffic.quiet()
    seen = await page.evaluate("window.seen")
    await page.close()
    composer = seen["composer"] / 1000
    requests, size = traffic.until(composer)
    all_requests, all_size = traffic.until(READY_MS)
    return {
        "composer, s": composer,
        "FCP, s": seen["fcp"] / 1000,
        "LCP, s": seen["lcp"] / 1000,
        "CLS": worst_window(seen["shifts"]),
        "TBT, s": seen["blocked"] / 1000,
        "requests until the composer": requests,
        "KB until the composer": size,
        "requests in all": all_requests,
        "KB in all": all_size,
    }


@asynccontextmanager
async def new_context(
    running: Browser, product: Product, *, is_phone: bool
) -> AsyncIterator[BrowserContext]:
    """Yield a browser without a cache in which alice is signed in."""
    async with browser(running):
        context = await running.new_context(
            viewport=PHONE if is_phone else DESKTOP,  # type: ignore[arg-type]  # a TypedDict
            is_mobile=is_phone,
            has_touch=is_phone,
        )
        await context.add_init_script(WATCH)
        cookie = {
            "name": SESSION_COOKIE,
            "value": product.people["alice"][SESSION_COOKIE],
            "url": product.url,
        }
        await context.add_cookies([cookie])  # type: ignore[list-item]  # a TypedDict
        yield context


def write_chat(product: Product) -> None:
    """Fill the shared chat of the demo with messages of two people."""
    for number in range(MESSAGES):
        with product.api("bob" if number // 3 % 2 else "alice") as client:
            path = f"/api/v1/chats/{product.chat_id}/messages"
            client.post(path, json={"content": TEXT.format(number=number)}).raise_for_status()


async def measured(options: Any, product: Product) -> dict[str, list[float]]:
    """Measure on a running product; return the rounds of each figure."""
    path = services.chromium()
    if path is None:
        raise LookupError("no Chromium: set CHROMIUM")
    write_chat(product)
    url = f"{product.url}/chats/{product.chat_id}"
    figures: dict[str, list[float]] = {}
    async with running_browser(path) as running:
        async with browser(running):
            await sign_in(await running.new_context(), product, "alice")
        for _ in range(options.rounds):
            for device in options.devices:
                is_phone = device == "phone"
                async with new_context(running, product, is_phone=is_phone) as context:
                    for kind in ("cold", "warm"):
                        values_by_name = await visit(context, url, is_slow=is_phone)
                        for name, value in values_by_name.items():
                            figures.setdefault(f"{device}, {kind}, {name}", []).append(value)
                        if kind == "cold":
                            await asyncio.sleep(options.pause)
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = results.parser("first_visit", __doc__)
    devices = ["phone", "desktop"]
    parser.add_argument("--devices", nargs="+", choices=devices, default=devices, help="(both)")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between the visits (0)")
    options = parser.parse_args(arguments)
    with results.Results("first_visit", options.results) as report, ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="uamp-bench-"))
        settings = {**servers.NO_LIMITS, **results.settings_of(options)}
        product = Product(Path(folder), services.free_port(), settings, server="uvicorn")
        product.prepare()
        stack.callback(product.stop)
        stack.callback(product.close)
        product.start()
        for name, values in asyncio.run(measured(options, product)).items():
            print(f"{name:46}{spread(values)!s:>24}")
            report.add(f"first_visit.{name}", spread(values), name.rpartition(", ")[2])


if __name__ == "__main__":
    main()
