"""The screens of what people set, call and share: settings, threads, calls, links, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playwright.async_api import expect

from tests.screens.screen import Screen

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.screens.screen import Reach
    from tests.screens.stage import Stage

# A tone in the place of a microphone: the machines that take the pictures have none.
TONE: Final = """
navigator.mediaDevices.getUserMedia = async () => {
  const context = new AudioContext();
  const tone = context.createOscillator();
  const end = context.createMediaStreamDestination();
  tone.connect(end);
  tone.start();
  return end.stream;
};
"""


def _settings(section: str) -> Reach:
    """Return a function that opens a section of the person's settings."""

    async def reach(stage: Stage) -> Page:
        page = await stage.page()
        if await page.locator(".menu-button").is_visible():
            await page.locator(".menu-button").click()
        await page.get_by_test_id("settings").click()
        dialog = page.get_by_test_id("settings-dialog")
        await dialog.locator(f"#settings-tab-{section}").click()
        await expect(dialog.locator(f"#settings-tab-{section}[aria-selected=true]")).to_be_visible()
        return page

    return reach


def _thread(text: str, replies: int) -> Reach:
    """Return a function that opens the thread of a message."""

    async def reach(stage: Stage) -> Page:
        page = await stage.page()
        await page.get_by_test_id("message").filter(has_text=text).last.focus()
        await page.keyboard.press("t")
        panel = page.locator("thread-panel")
        await expect(panel.get_by_test_id("message")).to_have_count(1 + replies)
        return page

    return reach


async def _calling(stage: Stage, name: str, chat_id: str) -> Page:
    page = await stage.page(name, chat_id)
    await page.context.grant_permissions(["microphone"])
    await page.context.add_init_script(TONE)
    await page.reload()
    await page.get_by_test_id("composer").wait_for()
    return page


async def _call_of(stage: Stage) -> tuple[Page, Page]:
    """Return alice, who calls, and bob, whom it rings for; each in a page of their own."""
    await stage.hang_up()
    chat_id = stage.chat("Train at 08:40", users=("bob",))
    bob = await _calling(stage, "bob", chat_id)
    alice = await _calling(stage, "alice", chat_id)
    # That bob is there reaches her page over the socket by which she calls.
    await expect(alice.locator(".chat-title")).to_contain_text("2 online")
    await alice.get_by_test_id("call").click()
    stage.caller = alice
    await bob.get_by_test_id("ringing").wait_for()
    return alice, bob


async def _ringing(stage: Stage) -> Page:
    _, bob = await _call_of(stage)
    return bob


async def _in_call(stage: Stage) -> Page:
    alice, bob = await _call_of(stage)
    await bob.get_by_test_id("accept").click()
    for page in (alice, bob):
        await expect(page.locator(".call-member.is-joined")).to_have_count(2)
    return bob


def _link(kind: str, *, username: str = "") -> Reach:
    """Return a function that opens a link of the chat, as a person or without signing in."""

    async def reach(stage: Stage) -> Page:
        with stage.product.api("alice") as client:
            made = client.post(f"/api/v1/chats/{stage.chat_id}/{kind}", json={})
        page = await stage.page(username)
        await page.goto(made.raise_for_status().json()["url"])
        await page.locator("h1").wait_for()
        return page

    return reach


def _ended(path: str, *, username: str = "") -> Reach:
    """Return a function that opens a link that is not in force."""

    async def reach(stage: Stage) -> Page:
        page = await stage.page(username)
        await page.goto(stage.product.url + path)
        await page.locator("h1").wait_for()
        return page

    return reach


async def _links(stage: Stage) -> Page:
    page = await stage.page()
    if not await page.locator("members-panel").is_visible():
        await page.get_by_test_id("members").click()
    await page.get_by_test_id("share-button").click()
    await page.get_by_test_id("links-dialog").wait_for()
    return page


async def _viewer(stage: Stage) -> Page:
    page = await stage.page()
    await page.locator("chat-view .media-image").first.click()
    await page.get_by_test_id("viewer").wait_for()
    return page


async def _search_for_nothing(stage: Stage) -> Page:
    page = await stage.page()
    await page.keyboard.press("Control+Shift+f")
    await page.get_by_test_id("search-text").fill("Reykjavik")
    await page.get_by_text("No messages found").wait_for()
    return page


async def _no_chat_chosen(stage: Stage) -> Page:
    page = await stage.page()
    await page.goto(f"{stage.product.url}/")
    await page.get_by_test_id("chat-item").first.wait_for()
    return page


SCREENS: Final = (
    Screen("no-chat-chosen", _no_chat_chosen),
    Screen("search-nothing", _search_for_nothing),
    Screen("viewer", _viewer),
    Screen("thread", _thread("Who is in for Saturday?", 1)),
    Screen("thread-empty", _thread("See you there", 0)),
    Screen("call-ringing", _ringing),
    Screen("call", _in_call),
    Screen("links", _links),
    Screen("shared-chat", _link("share-links")),
    Screen("shared-chat-ended", _ended("/shared/shr_ended")),
    Screen("invitation", _link("invite-links", username="bob")),
    Screen("invitation-ended", _ended("/join/inv_ended", username="bob")),
    *(
        Screen(f"settings-{section}", _settings(section), is_sampled=section == "notifications")
        for section in ("profile", "appearance", "writing", "privacy", "notifications", "account")
    ),
)
