"""The pages of the browser chat: who gets the shell, what it carries, what it never carries."""

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from agents_app.demo import DEMO_AGENTS
from chat_app.browser.bundle import bundle
from chat_app.contents.drawing import DRAWN_TYPES
from chat_app.people.profiles import profile_data
from chat_app.people.settings import SettingsChange, settings_data, settings_of, update_settings

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    *ROOT.glob("templates/*.html"),
    *ROOT.glob("templates/chat_app/*.html"),
    *ROOT.glob("templates/gateway_app/*.html"),
    *ROOT.glob("templates/registration/*.html"),
    *ROOT.glob("templates/sessions_app/*.html"),
]


@pytest.fixture
def alice(db: None) -> User:
    """Return a person who can sign in."""
    return User.objects.create_user("alice", password="correct horse")


@pytest.fixture
def client(alice: User) -> Client:
    """Return a browser in which alice is signed in."""
    browser = Client()
    browser.force_login(alice)
    return browser


def start_of(html: str) -> dict[str, object]:
    """Return the data that the shell hands to the components."""
    match = re.search(r'<script id="start" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    data = json.loads(match.group(1))
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize("path", ["/", "/chats/chat_0123"])
def test_the_shell_says_who_is_signed_in_and_which_chat_to_open(
    client: Client, alice: User, path: str
) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert start_of(response.text) == {
        "me": {"id": str(alice.pk), "username": "alice", **profile_data(alice)},
        "settings": settings_data(settings_of(alice.pk)),
        "chat_id": path.removeprefix("/chats/").strip("/"),
        "upload_bytes": 25 * 1024 * 1024,
        "link_cards": False,
        "transcripts": False,
        "previews": sorted(DRAWN_TYPES),
        "languages": [["en", "English"], ["de", "Deutsch"]],
        "csrf_cookie": "csrftoken",
        "needs_model": True,
        "may_connect_model": False,
        "agent_descriptions": {},
    }


def test_the_shell_has_the_descriptions_of_the_demo_in_the_language_of_the_page(
    client: Client,
) -> None:
    echo = DEMO_AGENTS["echo"]["description"]
    german = client.get("/", headers={"Accept": "text/html", "Accept-Language": "de"}).text
    descriptions = start_of(german)["agent_descriptions"]
    assert isinstance(descriptions, dict)
    assert descriptions[echo].startswith("Wiederholt deine Worte")


def test_the_shell_gives_the_csrf_cookie_and_is_not_kept_by_caches(client: Client) -> None:
    response = client.get("/")
    assert response.cookies["csrftoken"].value
    assert "no-store" in response["Cache-Control"]


def test_the_shell_names_its_release_and_its_person(client: Client, alice: User) -> None:
    """The service worker keeps it for that person, if the release is its own."""
    release, person = client.get("/")["X-Page"].split(".")

    assert f'"id": "{release}"' in client.get("/service-worker.js").text
    assert person == str(alice.pk)
    assert "X-Page" not in client.get("/money")
    assert "X-Page" not in Client().get("/")


def test_signing_out_of_the_admin_empties_the_storage_of_the_browser(
    client: Client, alice: User
) -> None:
    alice.is_staff = True
    alice.save()

    assert client.post("/admin/logout/")["Clear-Site-Data"] == '"cache", "storage"'


def test_a_chat_id_cannot_break_out_of_the_data(client: Client) -> None:
    response = client.get("/chats/%3Cscript%3Ealert(1)")
    assert "<script>alert" not in response.text
    assert start_of(response.text)["chat_id"] == "<script>alert(1)"


@pytest.mark.parametrize("path", ["/", "/chats/chat_0123"])
def test_without_a_session_the_shell_leads_to_the_login_page(path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 302
    assert response["Location"] == f"{reverse('login')}?next={path}"


def test_a_wrong_address_gets_a_page_that_leads_back(client: Client) -> None:
    response = client.get("/nothing/here")
    assert response.status_code == 404
    assert '<a class="button button-primary" href="/">' in response.text


def test_the_style_page_is_for_staff(client: Client, alice: User) -> None:
    assert client.get("/style/").status_code == 404
    assert Client().get("/style/")["Location"] == f"{reverse('login')}?next=/style/"

    alice.is_staff = True
    alice.save()

    assert start_of(client.get("/style/").text)["me"] == {
        "id": str(alice.pk),
        "username": "alice",
        **profile_data(alice),
    }


def test_the_shell_takes_no_post(client: Client) -> None:
    assert client.post("/").status_code == 405


def test_signing_in_leads_to_the_page_that_was_wanted(alice: User) -> None:
    browser = Client()
    response = browser.post(
        "/login",
        {"username": alice.username, "password": "correct horse", "next": "/chats/chat_0123"},
    )
    assert response.status_code == 302
    assert response["Location"] == "/chats/chat_0123"
    assert browser.get("/").status_code == 200


def test_signing_in_does_not_lead_away_from_this_server(alice: User) -> None:
    response = Client().post(
        "/login",
        {"username": alice.username, "password": "correct horse", "next": "https://evil.test/"},
    )
    assert response["Location"] == "/"


def test_a_wrong_password_is_reported_and_the_name_is_kept(alice: User) -> None:
    response = Client().post("/login", {"username": alice.username, "password": "wrong"})
    assert response.status_code == 200
    assert 'role="alert"' in response.text
    assert 'value="alice"' in response.text


def test_the_login_page_sends_on_who_is_signed_in(client: Client) -> None:
    response = client.get("/login")
    assert response.status_code == 302
    assert response["Location"] == "/"


def test_signing_out_is_a_post_and_ends_the_session(client: Client) -> None:
    assert client.get("/logout").status_code == 405
    response = client.post("/logout")
    assert response["Location"] == reverse("login")
    assert response["Clear-Site-Data"] == '"cache", "storage"'
    assert client.get("/").status_code == 302


@pytest.mark.parametrize("path", ["/", "/login"])
def test_the_policy_of_the_pages_allows_only_this_server(client: Client, path: str) -> None:
    browser = client if path == "/" else Client()
    policy = browser.get(path)["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_hold_no_inline_script_style_or_handler(page: Path) -> None:
    markup = page.read_text()
    assert re.search(r"<style|\sstyle=|\son\w+=|javascript:", markup) is None
    assert re.search(r"<script(?![^>]*\ssrc=)", markup) is None


def test_everything_that_the_shell_loads_exists(client: Client) -> None:
    html = client.get("/").text
    loaded = re.findall(r'(?:href|src)="/static/([^"]+)"', html)
    manifest = bundle()
    start = "chat/app.js" if manifest is None else f"dist/{manifest.entries['chat/app.js'][0]}"
    assert start in loaded
    for name in loaded:
        assert (ROOT / "static" / name).is_file(), name


def bundled(html: str, relation: str) -> set[str]:
    """Return the files of the bundle that a page names, by the kind of link or as its script."""
    links = set(re.findall(rf'<link rel="{relation}" href="(/static/dist/[^"]+)"', html))
    return links | set(re.findall(r'<script type="module" src="(/static/dist/[^"]+)"', html))


def test_the_page_preloads_what_its_scripts_import_first(client: Client) -> None:
    html = client.get("/").text
    manifest = bundle()
    assert manifest is not None, "run: make pages"
    entries = ("chat/app.js", "chat/log/message-list.js")

    paths = {f"/static/dist/{name}" for entry in entries for name in manifest.entries[entry]}

    assert bundled(html, "modulepreload") == paths


def test_the_login_page_fetches_what_the_chats_load(client: Client) -> None:
    html = client.get("/").text

    fetched = bundled(Client().get("/login").text, "prefetch")

    assert bundled(html, "modulepreload") | bundled(html, "stylesheet") < fetched
    assert any("/later-" in address for address in fetched)


def test_without_the_bundle_pages_load_the_sources(client: Client, settings: Settings) -> None:
    settings.UAMP_BUNDLED_PAGES = False

    assert "/static/dist/" not in Client().get("/login").text
    html = client.get("/").text
    assert "/static/dist/" not in html
    assert '<script type="module" src="/static/chat/app.js"></script>' in html
    assert '<link rel="stylesheet" href="/static/chat/styles/chat.css">' in html


@pytest.mark.parametrize(
    ("path", "chat"),
    [
        ("/chats/chat_0123", "chat_0123"),
        ("/chats/a%22b!'()*~", "a%22b!&#x27;()*~"),
        ("/chats/chat_0123?message=msg_1", ""),
        ("/chats/chat_0123?thread=msg_1", ""),
        ("/", ""),
    ],
)
def test_what_the_scripts_read_first_is_preloaded(client: Client, path: str, chat: str) -> None:
    html = client.get(path).text
    addresses = re.findall(r'<link rel="preload" as="fetch" crossorigin href="([^"]+)">', html)
    query = "limit=50&amp;expand=signature&amp;thread=none&amp;order=desc"

    ends = ("", f"/messages?{query}", "/receipts") if chat else ()
    assert addresses == [f"/api/v1/chats/{chat}{end}" for end in ends]


@pytest.mark.parametrize("module", sorted((ROOT / "static").rglob("*.js")), ids=lambda m: m.name)
def test_modules_import_only_files_of_this_server(module: Path) -> None:
    for target in re.findall(r'^import\b[^"]*"([^"]+)"', module.read_text(), re.MULTILINE):
        assert target.startswith("."), target
        assert (module.parent / target).resolve().is_file(), target


def test_the_first_frame_has_the_theme_and_density_of_the_person(
    client: Client, alice: User
) -> None:
    """No script decides them: what it would change afterwards would be seen."""
    for path in ("/", "/money", "/account", "/account/password"):
        page = client.get(path).text
        assert 'data-theme="' not in page, path
        assert page.count('name="theme-color"') == 2, path
    change = SettingsChange(theme="dark", density="compact")
    update_settings(user_id=alice.pk, change=change)
    for path in ("/", "/money", "/account", "/account/password"):
        page = client.get(path).text
        assert ' data-theme="dark" data-density="compact">' in page, path
        assert page.count('name="theme-color"') == 1, path
    # Before signing in, the browser's own cookie says it; what it says is not repeated unchecked.
    visitor = Client()
    for chosen, is_light in (("light", True), ('"><script>', False), ("pink", False)):
        visitor.cookies["theme"] = chosen
        assert ('data-theme="light"' in visitor.get("/login").text) == is_light


def test_the_page_of_a_diagram_has_no_origin_and_reaches_nothing(client: Client) -> None:
    answer = client.get("/diagram/")
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer["Content-Security-Policy"].split(";")
        if part.strip()
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
        "sandbox": "allow-scripts",
    }
    assert answer["X-Frame-Options"] == "SAMEORIGIN"


def test_only_pages_with_messages_have_frames(client: Client) -> None:
    assert "frame-src 'self'" in client.get("/")["Content-Security-Policy"]
    assert "frame-src" not in client.get("/money")["Content-Security-Policy"]
    assert client.get("/")["X-Frame-Options"] == "DENY"
