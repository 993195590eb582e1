"""The addresses and the agents that a command names."""

import sys
from pathlib import Path

import pytest

from uap.serving.addresses import NotAnAddress, read_address
from uap.serving.loading import AgentNotLoaded, default_name, load

MODULE = """
from uap import agent
from upp.providers.scripted import ScriptedProvider

model = ScriptedProvider(scripts={"s": print})("s")
served = agent(model=model)
text = "no agent"


def made():
    return agent(model=model)


def broken():
    raise ValueError("no")


class Agents:
    mine = served
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("served_here", "needs_more", "raises"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "served_here.py").write_text(MODULE)
    (tmp_path / "needs_more.py").write_text("import surely_not_there")
    (tmp_path / "raises.py").write_text("1 / 0")


@pytest.mark.parametrize("attribute", ["served", "made", "Agents.mine"])
def test_an_agent_is_found_in_the_working_directory(module: None, attribute: str) -> None:
    assert load(f"served_here:{attribute}").model.model_id == "s"
    assert load(f"served_here:{attribute}").model.model_id == "s"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("served_here", "form module:agent"),
        (":served", "form module:agent"),
        ("not_there:agent", "no module 'not_there'"),
        ("needs_more:agent", "surely_not_there, which is not installed"),
        ("raises:agent", "ZeroDivisionError"),
        ("served_here:nothing", "has no 'nothing'"),
        ("served_here:text", "is a str"),
        ("served_here:broken", "ValueError"),
    ],
)
def test_a_place_without_an_agent_is_explained(module: None, place: str, message: str) -> None:
    with pytest.raises(AgentNotLoaded, match=message):
        load(place)


def test_an_agent_without_a_name_is_called_like_its_attribute() -> None:
    assert default_name("package.module:My_Agent") == "my-agent"
    assert default_name("module:Agents.mine") == "mine"


@pytest.mark.parametrize(
    ("text", "socket", "exposed"),
    [
        ("wss://chat.example.org", "https://chat.example.org/ws", False),
        ("https://chat.example.org/", "https://chat.example.org/ws", False),
        ("ws://127.0.0.1:8000/uamp", "http://127.0.0.1:8000/uamp", False),
        ("ws://[::1]:80", "http://[::1]:80/ws", False),
        ("http://chat.example.org/ws", "http://chat.example.org/ws", True),
    ],
)
def test_an_address_is_read_as_people_write_it(text: str, socket: str, *, exposed: bool) -> None:
    address = read_address(text)

    assert (address.socket, address.is_exposed) == (socket, exposed)
    assert address.display == socket.rpartition("/")[0]


@pytest.mark.parametrize(
    "text",
    ["", "chat.example.org", "ftp://x", "wss://", "wss://u@x", "wss://x?token=1", "wss://x:99999"],
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(NotAnAddress):
        read_address(text)
