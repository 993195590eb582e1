"""Requests as a browser sends them when a person opens a page."""

from typing import Final

from django.test import Client

from tests.live_server import Person

BROWSER: Final = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def signed_in(person: Person) -> dict[str, str]:
    """Return the headers of a browser in which a person is signed in."""
    browser = Client()
    browser.force_login(person.user)
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())
    return {**BROWSER, "Cookie": cookies}
