"""The product as started by `make run`, in separate processes, with browsers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from playwright.async_api import async_playwright, expect

from tests import databases, run_folder, services
from tests.journeys.shell import ProductShell
from tests.programs import PROGRAM_SECONDS, Program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

ROOT = Path(__file__).resolve().parents[2]
# A page shows what it must show at once, except on a machine busy with other work.
expect.set_options(timeout=30_000)
SESSION_COOKIE = "sessionid"
# Prints the session cookie of each person as JSON.
SIGN_IN = """
import json
from django.contrib.auth.models import User
from django.test import Client
cookies = {}
for user in User.objects.all():
    client = Client()
    client.force_login(user)
    cookies[user.username] = client.cookies["sessionid"].value
print(json.dumps(cookies))
"""
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Product:
    """A running server with its own data directory and demo."""

    data_dir: Path
    port: int
    environment: dict[str, str] = field(default_factory=dict)
    people: dict[str, dict[str, str]] = field(default_factory=dict)
    chat_id: str = ""
    process: Program | None = None
    # `serve` (Daphne), or `uvicorn` as in production.
    server: str = "serve"
    # Whether `serve` starts the workers for tools, webhooks, link cards and transcripts.
    has_workers: bool = True
    # The code that it runs: this, or a release before it.
    folder: Path = ROOT
    # Ports of the further server processes: pages are opened on all of them in turn.
    further_ports: list[int] = field(default_factory=list)
    _opened_pages: int = 0
    _shell: ProductShell | None = None

    @property
    def command(self) -> list[str]:
        """The command that starts the server."""
        if self.server == "serve":
            workers = [] if self.has_workers else ["--no-worker"]
            return [sys.executable, "manage.py", "serve", "--port", str(self.port), *workers]
        options = ["--port", str(self.port), "--log-level", "warning"]
        return [sys.executable, *services.UVICORN, *options]

    @property
    def url(self) -> str:
        """The origin."""
        return f"http://127.0.0.1:{self.port}"

    def next_url(self) -> str:
        """Return the origin for the next page, different from that of the page before."""
        ports = [self.port, *self.further_ports]
        port = ports[self._opened_pages % len(ports)]
        self._opened_pages += 1
        return f"http://127.0.0.1:{port}"

    def manage(self, *arguments: str) -> str:
        """Run a management command and return its output."""
        done = subprocess.run(  # noqa: S603 our own command
            [sys.executable, "manage.py", *arguments],
            cwd=self.folder,
            env=self.all_environment(),
            capture_output=True,
            check=False,
            timeout=PROGRAM_SECONDS,
        )
        assert done.returncode == 0, (arguments, done.stderr.decode()[-3000:])
        return done.stdout.decode()

    def run(self, code: str) -> str:
        """Run Python code on the product's database and return its output."""
        if self._shell is None:
            self._shell = ProductShell(self.folder, self.all_environment())
        return self._shell.run(code)

    def all_environment(self) -> dict[str, str]:
        """Return the environment of its processes."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name
            not in {
                "DATABASE_URL",
                "REDIS_URL",
                "SECRET_KEY",
                "DJANGO_SETTINGS_MODULE",
                "SQLITE_SYNCHRONOUS",
            }
        }
        return {
            **inherited,
            "DATA_DIR": str(self.data_dir),
            "LOG_LEVEL": "WARNING",
            **self.environment,
        }

    def prepare(self) -> None:
        """Create the database and the demo as copies of those prepared for the run."""
        url = self.environment.get("DATABASE_URL")
        if url is None:
            run_folder.copy_of(
                "product",
                lambda folder: make_demo(Product(folder, 0)),
                self.data_dir,
                folder=run_folder.SHARED_FOLDER,
            )
        else:
            databases.copy_prepared(
                url,
                lambda folder, template: make_demo(Product(folder, 0, {"DATABASE_URL": template})),
                self.data_dir,
            )
        demo = json.loads((self.data_dir / "demo.json").read_text())
        self.people = {person["username"]: person for person in demo["users"]}
        if "SECRET_KEY" in self.environment:
            # Sessions are only valid under the key with which they were created.
            for person in self.people.values():
                del person[SESSION_COOKIE]
        self.chat_id = demo["chats"][0]["id"]

    def close(self) -> None:
        """Stop the process in which `run` executed code."""
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def start(self) -> None:
        """Start the server and wait until it is ready."""
        self.process = Program(*self.command, cwd=self.folder, env=self.all_environment())
        services.wait_until_ready(self.url, self.process)

    def begin_to_stop(self) -> None:
        """Ask the server to stop, and wait until it accepts no more requests."""
        if self.process is None:
            raise AssertionError(self.url)
        self.process.terminate()
        with httpx.Client(trust_env=False) as client:
            while self.process.poll() is None:
                try:
                    if (
                        client.get(f"{self.url}/readyz").status_code
                        == HTTPStatus.SERVICE_UNAVAILABLE
                    ):
                        return
                except httpx.TransportError:
                    # Includes a connection that was pending when the port was closed.
                    return

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop the server with a signal."""
        if self.process is not None:
            self.process.end(number)
            self.process = None

    def api(self, username: str) -> httpx.Client:
        """Return an HTTP client with a person's API key."""
        headers = {"Authorization": f"Bearer {self.people[username]['api_key']}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def messages(self, username: str = "alice") -> list[dict[str, Any]]:
        """Return the messages of the shared chat, oldest first."""
        with self.api(username) as client:
            path = f"/api/v1/chats/{self.chat_id}/messages"
            answer = client.get(path, params={"order": "asc", "limit": 200})
        data: list[dict[str, Any]] = answer.raise_for_status().json()["data"]
        return data


def make_demo(product: Product) -> None:
    """Migrate, create the demo, sign its people in, and record them."""
    if "DATABASE_URL" not in product.environment:
        databases.copy_migrated(product.data_dir)
    product.manage("migrate", "-v", "0")
    demo = json.loads(product.manage("demo", "--json"))
    cookies = json.loads(product.run(SIGN_IN))
    product.close()
    for person in demo["users"]:
        person[SESSION_COOKIE] = cookies[person["username"]]
    (product.data_dir / "demo.json").write_text(json.dumps(demo))


@contextmanager
def running_product(
    data_dir: Path, *, has_workers: bool = False, **environment: str
) -> Iterator[Product]:
    """Run a separate product until the end of the block.

    Its workers, each in its own process, run only for journeys that give them work.
    """
    product = Product(data_dir, services.free_port(), environment, has_workers=has_workers)
    product.prepare()
    try:
        product.start()
        yield product
    finally:
        product.close()
        product.stop()


@asynccontextmanager
async def running_browser(executable: str) -> AsyncIterator[Browser]:
    """Run a real Chromium."""
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(
            executable_path=executable, args=BROWSER_ARGUMENTS
        )
        try:
            yield chromium
        finally:
            await chromium.close()


@asynccontextmanager
async def browser(running: Browser) -> AsyncIterator[Browser]:
    """Use the shared browser, and close every context opened in the meantime."""
    try:
        yield running
    finally:
        for context in list(running.contexts):
            await context.close()


async def sign_in(
    context: BrowserContext,
    product: Product,
    username: str,
    chat_id: str = "",
    *,
    by_form: bool = False,
) -> Page:
    """Sign a person in and open a chat, the shared one if none is named."""
    page = await signed_in(context, product, username, by_form=by_form)
    await page.goto(f"{product.next_url()}/chats/{chat_id or product.chat_id}")
    await page.get_by_test_id("composer").wait_for()
    # The chat is open when its history, or its absence, is on the page.
    history = page.get_by_test_id("message").or_(page.get_by_test_id("no-messages"))
    await history.first.wait_for()
    return page


async def signed_in(
    context: BrowserContext, product: Product, username: str, *, by_form: bool = False
) -> Page:
    """Return a page in which a person is signed in, without a chat.

    People of the demo are signed in already (`make_demo`). The first sign-in of others uses the
    form, as does one whose session the test ends; later ones reuse the cookie of the first. A
    script error or a CSP report fails the test.
    """
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", partial(_complain, complaints))
    page.complaints = complaints  # type: ignore[attr-defined]  # read by `no_complaints`
    person = product.people[username]
    if by_form or SESSION_COOKIE not in person:
        await fill_in_login(page, product, username)
        if not by_form:
            cookies = await context.cookies(product.url)
            person[SESSION_COOKIE] = next(
                cookie["value"] for cookie in cookies if cookie["name"] == SESSION_COOKIE
            )
    else:
        await context.add_cookies(
            [{"name": SESSION_COOKIE, "value": person[SESSION_COOKIE], "url": product.url}]
        )
    return page


async def fill_in_login(page: Page, product: Product, username: str) -> None:
    """Sign a person in with the form."""
    await page.goto(f"{product.url}/login")
    await page.fill("input[name=username]", username)
    await page.fill("input[name=password]", product.people[username]["password"])
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{product.url}/")


def _complain(complaints: list[str], line: ConsoleMessage) -> None:
    """Keep a CSP report; what axe does in the page has no address, and is not the page's."""
    if "Content Security" in line.text and line.location["url"]:
        complaints.append(f"{line.text} ({line.location['url']})")


def no_complaints(*pages: Page) -> None:
    """Assert that no page had a script error or a blocked resource."""
    complaints = [line for page in pages for line in page.complaints]  # type: ignore[attr-defined]
    assert complaints == [], complaints


async def write(page: Page, text: str) -> None:
    """Write a message and send it; thousands of lines take a busy browser a minute."""
    await page.get_by_test_id("composer").fill(text, timeout=120_000)
    await page.keyboard.press("Enter")
