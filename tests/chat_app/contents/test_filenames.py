"""A file keeps its name and its ending; only what is dangerous in a name goes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
import regex
from django.test import Client

from chat_app.contents.filenames import FILENAME_BYTES, clean_filename
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
KEPT = [
    "2024\uff0f05報告.csv",
    "名前\uff1a最終\uff3c版\uff3f①.xlsx",
    "گزارش\u200c\u0647\u0627.pdf",
    "क्\u200dष.txt",
    f"{FAMILY}.png",
    f"{SCOTLAND} plan.pdf",
    "\u2764\ufe0f.md",
    "神\ufa19社\uf900.txt",
    "Å Ω K ﬁ ² ½ ℃.txt",
    "Bildschirmfoto 3.04.05\u202fPM.png",
    "non\u00a0breaking\u3000space.txt",
    "soft\u00adhyphen.txt",
    "דוח\u200f.txt",
    "a&amp;b &#1234; %22.csv",
    'quo"te;semi,colon.txt',
    ".gitignore",
    "..two.dots",
    "archive.tar.gz",
    "no ending",
    "CON.txt",
]


@pytest.mark.parametrize("name", KEPT)
def test_a_name_stays_as_it_was_written(name: str) -> None:
    assert clean_filename(name) == name


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("../../a\u202egpj.exe", "agpj.exe"),
        ("C:\\Users\\ada\\b.csv", "b.csv"),
        ("a/b\\c.txt", "c.txt"),
        ("a\0b\r\nc\x7f\x85.txt", "abc.txt"),
        ("a\u2028b\u2029.txt", "ab.txt"),
        ("\u2066a\u2069\u202a.txt\u202c", "a.txt"),
        ("a\ud800.txt", "a.txt"),
        (".\u202e.", ""),
        ("..", ""),
        ("/", ""),
        ("   ", ""),
        ("e\u0301te\u0301.txt", "été.txt"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af.txt", "한글.txt"),
    ],
)
def test_what_is_dangerous_goes(name: str, stored: str) -> None:
    assert clean_filename(name) == stored


@pytest.mark.parametrize(
    ("stem", "ending"),
    [
        ("報" * 90, ".csv"),
        ("報" * 300, ".tar.gz"),
        ("a" * 252, ".csv"),
        ("ö" * 200, ".JPEG"),
        (FAMILY * 20, ".png"),
        ("\U0001f44d\U0001f3fd" * 60, ".png"),
        ("क्\u200dषि" * 40, ".txt"),
        ("e\u0332" * 120, ".txt"),
        ("報" * 90, ".報告"),
        ("🇩🇪" * 70, ".pn"),
        ("1️⃣" * 60, ".png"),
        ("กำ" * 60, ".csv"),
        (SCOTLAND * 12, ".webp"),
        ("報告" * 60, ".numbers"),
        ("a" * 300, ".sublime-workspace"),
        ("報" * 90, ".backup-2024-05-01"),
        ("報" * 90, ".tar.zst"),
        ("v1.2 " + "x" * 300, ".txt"),
    ],
)
def test_a_long_name_keeps_its_ending(stem: str, ending: str) -> None:
    short = clean_filename(stem + ending)
    cut = short.removesuffix(ending)

    assert short.endswith(ending)
    assert stem.startswith(cut)
    assert FILENAME_BYTES - 30 < len(short.encode()) <= FILENAME_BYTES
    # Nothing that is drawn as one is cut in two.
    after = stem[len(cut)]
    assert not cut.endswith("\u200d")
    assert len(regex.findall(r"\X", cut + after)) > len(regex.findall(r"\X", cut))
    assert after not in "\u200d\u0332\u094d\u093f\U0001f3fd"


def test_a_name_without_an_ending_is_cut_too() -> None:
    assert clean_filename("報" * 300) == "報" * 85
    assert clean_filename("a." + "b" * 300) == "a." + "b" * 253
    assert len(clean_filename("e" + "\u0332" * 300).encode()) == FILENAME_BYTES


@pytest.mark.sampled(6)
@pytest.mark.django_db
@pytest.mark.parametrize("name", KEPT)
def test_a_name_goes_in_and_out_over_rest(name: str, settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    client = Client()
    client.force_login(factories.user("ada"))
    # As browsers write it: in UTF-8, with the quotation mark in percent.
    form_name = name.replace('"', "%22").encode()
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n\r\na\r\n--x--\r\n'
    )
    multipart = "multipart/form-data; boundary=x"
    stored = client.post("/api/v1/contents", body % form_name, content_type=multipart).json()
    disposition = client.get(stored["url"])["Content-Disposition"]

    assert stored["filename"] == name.replace('"', "%22")
    assert stored["item"]["filename"] == stored["filename"]
    if stored["filename"].isascii():
        assert disposition.endswith(f'filename="{stored["filename"]}"')
    else:
        encoded = disposition.rpartition("filename*=utf-8''")[2]
        assert unquote(encoded) == name
