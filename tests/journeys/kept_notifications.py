"""Pages that record the notifications they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.journeys.product import Product, sign_in

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

# A headless browser shows no notifications, so those passed to it by the page are recorded.
RECORDER = """
window.shownNotifications = [];
window.Notification = class {
  static permission = "granted";
  static requestPermission = async () => "granted";
  constructor(title, options) {
    Object.assign(this, { title, ...options });
    shownNotifications.push(this);
  }
  close() {}
};
"""


async def notified(*pages: Page) -> list[tuple[str, str]]:
    """Return the notifications shown by a browser's tabs, as titles and texts."""
    page_notifications = [
        await page.evaluate("shownNotifications.map(({ title, body }) => [title, body])")
        for page in pages
    ]
    return [(title, body) for notifications in page_notifications for title, body in notifications]


# The start page opens the chat that was open last, and the only one.
FORGET_LAST_CHAT = """() => Object.keys(localStorage)
  .filter((key) => key.startsWith("uamp.last-chat."))
  .forEach((key) => localStorage.removeItem(key))"""


async def listening(context: BrowserContext, product: Product, username: str) -> Page:
    """Return a tab without an open chat that records its notifications."""
    await context.add_init_script(RECORDER)
    page = await sign_in(context, product, username)
    await page.evaluate(FORGET_LAST_CHAT)
    with product.api(username) as client:
        if len(client.get("/api/v1/chats").raise_for_status().json()["data"]) == 1:
            another = {"title": "Another", "users": [], "agents": []}
            client.post("/api/v1/chats", json=another).raise_for_status()
        body = {"content": "I am here", "agents": []}
        client.post(f"/api/v1/chats/{product.chat_id}/messages", json=body).raise_for_status()
    await page.goto(f"{product.url}/")
    await page.get_by_test_id("chat-item").first.wait_for()
    await expect(page.get_by_role("button", name="New chat").first).to_be_visible()
    return page
