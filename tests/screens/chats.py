"""The screens of the chat page: messages, answers that run, and what opens over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playwright.async_api import expect

from tests.journeys.attachments import attach, photo
from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import write
from tests.screens.screen import Screen

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page, WebSocketRoute

    from tests.screens.screen import Reach
    from tests.screens.stage import Stage

# The newest message, which the log has.
_REMOVE: Final = """
from chat_app.models import Message
Message.objects.filter(chat_id="{chat}").latest("seq").delete()
"""


def _message(page: Page, text: str) -> Locator:
    return page.get_by_test_id("message").filter(has_text=text).last


async def _begin(stage: Stage, question: str) -> Page:
    """Ask in a new chat, so that the answer is on no other screen."""
    agent = question.split(maxsplit=1)[0].removeprefix("@")
    page = await stage.page(chat_id=stage.chat(f"Ask {agent}", agents=(agent,), users=("bob",)))
    await write(page, question)
    return page


async def _streaming(stage: Stage) -> Page:
    page = await _begin(stage, "@slow count, please")
    live = page.get_by_test_id("live-response").get_by_test_id("message-body")
    await expect(live).to_contain_text("word3")
    return page


async def _stopped(stage: Stage) -> Page:
    page = await _streaming(stage)
    await page.get_by_test_id("stop").click()
    await expect(page.locator(".message-ending")).to_have_count(1)
    return page


async def _thinking(stage: Stage) -> Page:
    page = await _begin(stage, "@thinker why is the sky blue?")
    answer = page.locator(".message.from-agent:not([data-testid=live-response])")
    await expect(answer).to_have_count(1, timeout=20_000)
    await answer.locator("details summary").first.click()
    return page


async def _approval(stage: Stage) -> Page:
    page = await stage.page(chat_id=stage.chat("Pictures", agents=("careful",)))
    await attach(page, photo(stage.folder / "oslo.png", 300, 200), "@careful turn it left")
    await expect(page.get_by_test_id("approval").locator("img")).to_have_count(1, timeout=20_000)
    return page


async def _payment(stage: Stage) -> Page:
    payer = PayingPerson(stage.product, money="10")
    page = await stage.page(payer.name, payer.chat_id)
    await write(page, "Hello")
    await page.get_by_test_id("pay").wait_for()
    return page


async def _receipt(stage: Stage) -> Page:
    page = await _payment(stage)
    await page.get_by_test_id("pay").click()
    await page.get_by_test_id("receipt").locator("summary").click()
    return page


async def _signature(stage: Stage) -> Page:
    page = await _receipt(stage)
    await page.get_by_test_id("signature").last.click()
    await page.get_by_test_id("signature-details").wait_for()
    return page


async def _verify(stage: Stage) -> Page:
    page = await _signature(stage)
    await page.get_by_test_id("verify-chat").click()
    await page.get_by_test_id("verify-verdict").wait_for()
    return page


async def _verify_incomplete(stage: Stage) -> Page:
    page = await _signature(stage)
    chat_id = page.url.rpartition("/")[2]
    stage.product.run(_REMOVE.format(chat=chat_id))
    await page.get_by_test_id("verify-chat").click()
    await page.get_by_test_id("verify-gaps").wait_for()
    return page


async def _no_money(stage: Stage) -> Page:
    payer = PayingPerson(stage.product, money="")
    page = await stage.page(payer.name, payer.chat_id)
    await write(page, "Hello")
    await page.get_by_test_id("payment").wait_for()
    return page


async def _empty_chat(stage: Stage) -> Page:
    return await stage.page(chat_id=stage.chat("New plans", agents=("assistant",)))


async def _failed(stage: Stage) -> Page:
    page = await _begin(stage, "@fail is it going to rain?")
    await expect(page.locator(".message-ending")).to_have_count(1, timeout=20_000)
    return page


class _Wire:
    """The sockets of a page, which go through until they are cut; later ones are closed at once."""

    def __init__(self) -> None:
        self._open: list[WebSocketRoute] = []
        self._is_cut = False

    async def take(self, route: WebSocketRoute) -> None:
        if self._is_cut:
            await route.close()
            return
        route.connect_to_server()
        self._open.append(route)

    async def cut(self) -> None:
        self._is_cut = True
        for route in self._open:
            await route.close()


async def _lost_connection(stage: Stage) -> Page:
    page, wire = await stage.page(), _Wire()
    await page.route_web_socket("**/*", wire.take)
    await page.reload()
    await expect(page.get_by_test_id("message").last).to_contain_text("See you there")
    await wire.cut()
    await page.locator("connection-banner").get_by_role("button").first.wait_for()
    await page.get_by_test_id("composer").fill("Can you hear me?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("pending")).to_contain_text("Can you hear me?")
    return page


async def _plain(stage: Stage) -> Page:
    page = await stage.page()
    await expect(page.get_by_test_id("message").last).to_contain_text("See you there")
    return page


async def _markdown(stage: Stage) -> Page:
    page = await _plain(stage)
    await (
        _message(page, "Plan for Saturday")
        .get_by_test_id("message-body")
        .evaluate("body => body.scrollIntoView({ block: 'start' })")
    )
    return page


def _by_keys(*keys: str, then: str) -> Reach:
    """Return a function that presses keys in the plain chat, and waits for a test ID."""

    async def reach(stage: Stage) -> Page:
        page = await _plain(stage)
        await page.locator(".log").focus()
        for key in keys:
            await page.keyboard.press(key)
        await expect(page.get_by_test_id(then)).to_be_visible()
        return page

    return reach


def _on_message(text: str, *keys: str, then: str) -> Reach:
    """Return a function that presses keys on a message, and waits for a test ID."""

    async def reach(stage: Stage) -> Page:
        page = await _plain(stage)
        await _message(page, text).focus()
        for key in keys:
            await page.keyboard.press(key)
        await expect(page.get_by_test_id(then)).to_be_visible()
        return page

    return reach


def _by_item(text: str, item: str, *, then: str) -> Reach:
    """Return a function that chooses an item of a message's menu, and waits for a test ID."""

    async def reach(stage: Stage) -> Page:
        page = await _plain(stage)
        await _message(page, text).focus()
        await page.keyboard.press("m")
        await page.get_by_test_id("message-menu").get_by_test_id(item).click()
        await expect(page.get_by_test_id(then)).to_be_visible()
        return page

    return reach


async def _fork(stage: Stage) -> Page:
    chat_id = stage.chat("Weekend plans", users=("bob",))
    page = await stage.page(chat_id=chat_id)
    await write(page, "Who is in for Sunday?")
    await _message(page, "Who is in for Sunday?").focus()
    await page.keyboard.press("m")
    await page.get_by_test_id("message-menu").get_by_test_id("fork").click()
    await expect(page.get_by_test_id("change").get_by_role("link")).to_contain_text("Forked from")
    return page


def _written(text: str, then: str) -> Reach:
    """Return a function that writes into the composer without sending, and waits for a selector."""

    async def reach(stage: Stage) -> Page:
        page = await _plain(stage)
        await page.get_by_test_id("composer").press_sequentially(text)
        await expect(page.locator(then).first).to_be_visible()
        return page

    return reach


async def _members(stage: Stage) -> Page:
    page = await _plain(stage)
    panel = page.locator("members-panel")
    if not await panel.is_visible():
        await page.get_by_test_id("members").click()
    await panel.wait_for()
    return page


async def _member(stage: Stage) -> Page:
    page = await _members(stage)
    await page.locator("members-panel .member-list button").last.click()
    await page.get_by_test_id("member-dialog").wait_for()
    return page


async def _settings(stage: Stage) -> Page:
    page = await _members(stage)
    await page.get_by_test_id("chat-settings-button").click()
    await page.get_by_test_id("chat-settings").wait_for()
    return page


async def _list(stage: Stage) -> Page:
    page = await _plain(stage)
    shows = page.locator(".menu-button")
    if await shows.is_visible():
        await shows.click()
    await page.get_by_test_id("chat-item").first.wait_for()
    return page


async def _new_chat(stage: Stage) -> Page:
    page = await _list(stage)
    await page.get_by_test_id("new-chat").click()
    await page.get_by_test_id("new-chat-dialog").wait_for()
    return page


async def _search(stage: Stage) -> Page:
    page = await _plain(stage)
    await page.keyboard.press("Control+Shift+f")
    await page.get_by_test_id("search-text").fill('museum in:"Weekend in Lyon"')
    await page.get_by_test_id("search-result").first.wait_for()
    return page


async def _threads(stage: Stage) -> Page:
    page = await _plain(stage)
    await page.keyboard.press("Control+Shift+l")
    await page.get_by_test_id("threads-dialog").locator("ul, [role=note]").first.wait_for()
    return page


SCREENS: Final = (
    Screen("chat", _plain),
    Screen("chat-markdown", _markdown),
    Screen("chat-empty", _empty_chat),
    Screen("answer-streaming", _streaming),
    Screen("answer-stopped", _stopped),
    Screen("answer-thinking", _thinking),
    Screen("answer-failed", _failed),
    Screen("approval", _approval),
    Screen("payment", _payment),
    Screen("payment-no-money", _no_money),
    Screen("receipt", _receipt),
    Screen("signature", _signature),
    Screen("verify-chat", _verify),
    Screen("verify-incomplete", _verify_incomplete),
    Screen("connection-lost", _lost_connection),
    Screen("chat-list", _list),
    Screen("members", _members),
    Screen("member-dialog", _member),
    Screen("chat-settings", _settings),
    Screen("new-chat", _new_chat),
    Screen("search", _search),
    Screen("threads", _threads),
    Screen("palette", _by_keys("Control+k", then="palette")),
    Screen("shortcuts", _by_keys("?", then="shortcuts")),
    Screen("mention", _written("@t", "[role=option]")),
    Screen("mention-hint", _written("@darkroom ", "[data-testid=mention-hint]")),
    Screen("commands", _written("/", "[role=option]")),
    Screen("message-menu", _on_message("See you there", "m", then="message-menu")),
    Screen("fork", _fork),
    Screen("emoji-picker", _on_message("See you there", "+", then="emoji-picker")),
    Screen("reply", _on_message("See you there", "r", then="reply-preview")),
    Screen("edit", _on_message("Who is in for Saturday?", "e", then="editor")),
    Screen("delete", _on_message("Who is in for Saturday?", "Delete", then="delete-now")),
    Screen("message-console", _by_item("See you there", "show-as", then="console")),
)
