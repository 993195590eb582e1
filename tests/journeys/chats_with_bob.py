"""A chat of alice and bob, and its last message on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from tests.journeys.product import Product


def last(page: Page) -> Locator:
    return page.get_by_test_id("message").last


def new_chat(product: Product, title: str, *, agents: tuple[str, ...] = ()) -> str:
    body = {"title": title, "users": ["bob"], "agents": agents}
    with product.api("alice") as client:
        response = client.post("/api/v1/chats", json=body)
    chat_id: str = response.raise_for_status().json()["id"]
    return chat_id
