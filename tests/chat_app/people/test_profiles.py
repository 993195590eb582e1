"""Profiles over REST: names that are one's own, pictures that the server made itself."""

from __future__ import annotations

import io
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from PIL import Image

from chat_app.models import Profile, ProfilePicture
from chat_app.people import pictures, profiles
from chat_app.people.profiles import InvalidProfile, ProfileChange
from tests import factories
from tests.threads import join_threads

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def patch(client: Client, path: str, body: Any) -> Any:
    return client.patch(path, json.dumps(body), content_type="application/json")


def upload(client: Client, data: bytes, name: str = "a.png", mime: str = "image/png") -> Any:
    body = (
        f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        f"Content-Type: {mime}\r\n\r\n"
    ).encode()
    form = "multipart/form-data; boundary=x"
    return client.put("/api/v1/me/picture", body + data + b"\r\n--x--\r\n", content_type=form)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_a_person_says_who_they_are_and_others_see_it() -> None:
    ada, bea = factories.user("ada"), factories.user("bea")
    chat = factories.chat(ada, bea)
    fields = {
        "display_name": "Ada L.",
        "status_text": "On holiday",
        "avatar_emoji": "\U0001f680",
        "avatar_colour": "#0b6e99",
    }
    answer = patch(signed_in(ada), "/api/v1/me", {**fields, "display_name": " Ada \u202e L. "})
    assert answer.status_code == 200
    profile = {"id": str(ada.pk), "username": "ada", **fields, "avatar_url": None}
    assert answer.json() == profile
    other = signed_in(bea)
    members = other.get(f"/api/v1/chats/{chat.pk}").json()["participants"]
    assert profile.items() - {("id", str(ada.pk)), ("username", "ada")} <= members[0].items()
    for prefix in ("ad", "AdaL", "ada l"):
        assert other.get("/api/v1/users", {"q": prefix}).json()["data"] == [profile], prefix
    # What is not named stays, what is empty goes.
    answer = patch(signed_in(ada), "/api/v1/me", {"display_name": ""}).json()
    assert (answer["display_name"], answer["status_text"]) == ("", "On holiday")
    assert Profile.objects.get(pk=ada.pk).name_key is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "body",
    [
        {"display_name": "bea"},
        {"display_name": "B E A"},
        {"display_name": "Cleo"},
        {"display_name": "cl-eo"},
        {"display_name": "echo"},
        {"display_name": "x" * 41},
        {"display_name": ["x"]},
        {"avatar_emoji": "ab"},
        {"avatar_colour": "red"},
        {"avatar_colour": "#12345"},
        {"status_text": "x" * 81},
        {"avatar_url": "/x"},
        {"is_staff": True},
    ],
)
def test_a_profile_that_cannot_be_is_refused_and_nothing_is_changed(body: Any) -> None:
    ada = factories.user("ada")
    factories.user("bea")
    factories.agent("echo")
    cleo = factories.user("c")
    profiles.update_profile(user=cleo, change=ProfileChange(display_name="Cleo"))
    profiles.update_profile(user=ada, change=ProfileChange(status_text="here"))
    answer = patch(signed_in(ada), "/api/v1/me", {"status_text": "gone", **body})
    assert answer.status_code == 400, answer.content
    assert Profile.objects.get(pk=ada.pk).status_text == "here"
    # One's own username and name are one's own.
    for name in ("ADA", "Ada"):
        assert patch(signed_in(ada), "/api/v1/me", {"display_name": name}).status_code == 200


def test_the_name_of_a_private_agent_of_others_is_not_given_away() -> None:
    ada, bea = factories.user("ada"), factories.user("bea")
    factories.agent("secret", is_public=False, owner=bea)
    assert patch(signed_in(ada), "/api/v1/me", {"display_name": "secret"}).status_code == 200
    assert patch(signed_in(bea), "/api/v1/me", {"display_name": "Secret"}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_two_who_take_one_name_at_once_do_not_both_have_it() -> None:
    people = [factories.user(name) for name in ("ada", "bea")]
    ready = threading.Barrier(2)
    refused: list[str] = []

    def take(user: User) -> None:
        try:
            ready.wait(60)
            profiles.update_profile(user=user, change=ProfileChange(display_name="Cleo"))
        except InvalidProfile as error:
            refused.append(error.field)
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=[user]) for user in people]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert refused == ["display_name"]
    assert Profile.objects.filter(name_key="cleo").count() == 1


def test_a_picture_is_a_square_that_the_server_made(settings: Settings) -> None:
    ada, bea = factories.user("ada"), factories.user("bea")
    client = signed_in(ada)
    wide = Image.new("RGB", (600, 200), "red")
    wide.paste("blue", (200, 0, 400, 200))
    exif = Image.Exif()
    exif[0x9286] = "a secret place"
    data = encoded(wide, "JPEG", exif=exif) + b"<script>trailing</script>"
    # Neither the name nor the declared type decide.
    answer = upload(client, data, name="a.svg", mime="text/html")
    assert answer.status_code == 200, answer.content
    url = answer.json()["avatar_url"]
    picture = signed_in(bea).get(url)
    assert (picture.status_code, picture["Content-Type"]) == (200, "image/webp")
    assert picture["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in picture["Cache-Control"]
    assert b"secret" not in picture.content
    assert b"script" not in picture.content
    with Image.open(io.BytesIO(picture.content)) as stored:
        assert stored.size == (pictures.PICTURE_PIXELS, pictures.PICTURE_PIXELS)
        red, _, blue = stored.convert("RGB").getpixel((10, 128))  # type: ignore[misc]  # three bands
        assert blue > 200 > red
    assert Client().get(url).status_code in {401, 403}
    assert client.get(url.replace(url[-16:], "0" * 16)).status_code == 404
    # Another picture has another address; without one the address is gone.
    other = upload(client, encoded(Image.new("RGBA", (3, 3)), "PNG")).json()["avatar_url"]
    assert other != url
    assert client.get(url).status_code == 404
    assert client.delete("/api/v1/me/picture").json()["avatar_url"] is None
    assert client.get(other).status_code == 404
    assert not ProfilePicture.objects.exists()
    upload(client, factories.png())
    url = client.get("/api/v1/me").json()["avatar_url"]
    ada.is_active = False
    ada.save()
    assert signed_in(bea).get(url).status_code == 404


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", 422),
        (b"<html>", 422),
        (factories.png()[:40], 422),
        (factories.png(40, 40)[:60], 422),
        (encoded(Image.new("RGB", (2, 2)), "TIFF"), 422),
        (encoded(Image.new("1", (6000, 6000)), "PNG"), 422),
        (encoded(Image.new("1", (4001, 4000)), "PNG"), 422),
        (b"", 400),
        (b"x" * 5000, 413),
    ],
)
def test_an_invalid_picture_is_refused_and_the_old_one_stays(
    settings: Settings, data: bytes, status: int
) -> None:
    ada = factories.user("ada")
    before = profiles.set_picture(user_id=ada.pk, data=factories.png()).picture_version
    settings.UAMP_PICTURE_BYTES = 4900
    answer = upload(signed_in(ada), data)
    assert answer.status_code == status, answer.content
    assert Profile.objects.get(pk=ada.pk).picture_version == before


@pytest.mark.django_db(transaction=True)
def test_a_picture_is_decoded_before_the_database_is_locked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within: list[bool] = []

    def noted(data: bytes) -> pictures.Square:
        within.append(connection.in_atomic_block)
        return pictures.square_of(data)

    monkeypatch.setattr(profiles, "square_of", noted)
    assert upload(signed_in(factories.user("ada")), factories.png()).status_code == 200
    assert within == [False]


def test_a_photograph_may_be_larger_than_what_is_decoded_whole() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    photograph = Image.new("RGB", (5000, 4000))
    photograph.paste("white", (0, 0, 2500, 4000))
    square = pictures.square_of(encoded(photograph, "JPEG", exif=turned))
    with Image.open(io.BytesIO(square.data)) as stored:
        # Its left half is above, once it is turned.
        assert stored.convert("L").getpixel((128, 20)) > 200  # type: ignore[operator]  # one band
        assert stored.convert("L").getpixel((128, 236)) < 50  # type: ignore[operator]  # one band


def test_pictures_have_a_limit_at_its_bytes(settings: Settings) -> None:
    client, data = signed_in(factories.user("ada")), factories.png()
    settings.UAMP_PICTURE_BYTES = len(data)
    assert upload(client, data).status_code == 200
    settings.UAMP_PICTURE_BYTES = len(data) - 1
    assert upload(client, data).status_code == 413
    with pytest.raises(pictures.InvalidPicture):
        pictures.square_of(data)
