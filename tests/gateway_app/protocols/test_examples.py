"""The example calls that the page of an agent prints, run as they stand."""

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.conftest import ServerAddress
from tests.gateway_app.protocols.browsers import BROWSER
from tests.live_server import Person
from tests.threads import thread_pool

pytestmark = pytest.mark.any_database

# What runs an example of each language, with the ending of its file.
PROGRAMS = {
    "curl": ("bash", "sh"),
    "Shell": ("bash", "sh"),
    "Python": (sys.executable, "py"),
    "JavaScript": ("node", "mjs"),
}
# Before version 22 a WebSocket of Node has to be asked for.
OPTIONS = {"JavaScript": ["--no-warnings", "--experimental-websocket"]}
PROTOCOLS = ["uamp", "completions", "responses", "anthropic", "ag-ui", "a2a", "acp"]
LANGUAGES = ["curl", "Python", "JavaScript", "Go", "Shell"]


def examples_of(page: str) -> dict[tuple[str, str], str]:
    """Return the examples on a page by protocol and language, as a person copies them."""
    examples: dict[tuple[str, str], str] = {}
    for protocol, section in re.findall(r'data-protocol="([^"]+)"(.*?)</section>', page, re.DOTALL):
        for language, code in re.findall(
            r'<figure data-language="([^"]+)">.*?<pre[^>]*>(.*?)</pre>', section, re.DOTALL
        ):
            examples[protocol, language] = html.unescape(code)
    return examples


def run(language: str, code: str, *, key: str, folder: Path) -> str:
    """Run an example in a file of its own, and return what it printed."""
    program, ending = PROGRAMS[language]
    executable = shutil.which(program)
    if executable is None:
        pytest.skip(f"no {program}")
    file = folder / f"{abs(hash(code))}.{ending}"
    file.write_text(code)
    done = subprocess.run(  # noqa: S603 our own page
        [executable, *OPTIONS.get(language, []), str(file)],
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "KEY": key, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), code
    return done.stdout


def test_each_protocol_has_examples_in_its_languages(web: httpx.Client) -> None:
    examples = examples_of(web.get("/agents/echo", headers=BROWSER).text)

    by_protocol = {
        protocol: [lang for example_protocol, lang in examples if example_protocol == protocol]
        for protocol, _ in examples
    }
    assert list(by_protocol) == PROTOCOLS
    assert all(languages == LANGUAGES for languages in by_protocol.values())


def test_the_examples_of_a_page_work_as_they_stand(
    demo: ServerAddress, web: httpx.Client, alice: Person, tmp_path: Path
) -> None:
    examples = examples_of(web.get("/agents/echo", headers=BROWSER).text)
    # Go and websocat are no part of a machine for tests.
    runnable = {
        which: code
        for which, code in examples.items()
        if which[1] in PROGRAMS and "websocat" not in code and shutil.which(PROGRAMS[which[1]][0])
    }

    def run_one(which: tuple[str, str]) -> str:
        return run(which[1], runnable[which], key=alice.key, folder=tmp_path)

    # At once: those of AG-UI name the same thread.
    with thread_pool(4) as pool:
        printed = dict(zip(runnable, pool.map(run_one, runnable), strict=True))
    for protocol in PROTOCOLS:
        assert {(protocol, "curl"), (protocol, "Python")} <= set(printed)
    silent = {
        which for which, text in printed.items() if "Hello" not in text or "there" not in text
    }
    assert silent == set()


@pytest.mark.parametrize("protocol", ["uamp", "acp"])
def test_the_frames_of_a_shell_are_answered(
    demo: ServerAddress, web: httpx.Client, alice: Person, tmp_path: Path, protocol: str
) -> None:
    code = examples_of(web.get("/agents/echo", headers=BROWSER).text)[protocol, "Shell"]
    print_command, socket, filter_command = re.split(r"\s+\\\n\s+\| ", code)
    frames = run("Shell", print_command, key=alice.key, folder=tmp_path).splitlines()
    url = socket.split()[-1]
    until = re.search(r"/(.+)/q", filter_command)
    assert until is not None
    assert url.startswith(f"{demo.ws}/agents/echo/")

    received = ""
    with connect(url, additional_headers=alice.headers, proxy=None) as connection:
        for frame in frames:
            connection.send(frame)
        while until[1] not in received:
            received += str(connection.recv(timeout=60)) + "\n"
    assert "Hello" in received
