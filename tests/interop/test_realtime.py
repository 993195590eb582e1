"""OpenAI's clients of the Realtime API, in GA and in the beta, and its Agents SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.deployments import SPEAKER_OPTIONS, SPOKEN
from tests.realtime_vendor import realtime_vendor, tone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.interop.conftest import Run
    from tests.interop.deployments import Deployment

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def speaker(deployment: Deployment, demo: ServerAddress, settings: Settings) -> Iterator[str]:
    """Give the name of an agent whose model speaks; two processes began with theirs."""
    if deployment.origin != demo.http:
        yield "speaker"
        return
    with realtime_vendor(SPOKEN) as vendor:
        settings.UAMP_MODEL_ALLOW_HOSTS = [vendor.url.split("/")[2]]
        yield vendor.agent(options=SPEAKER_OPTIONS).name


def test_openai_and_its_agents_speak(run_client: Run, speaker: str) -> None:
    seen = run_client("realtime", "realtime_sound_client.py", speaker)

    sound = len(tone(40)) * 7
    committed, spoken, beta = seen["ga"]["committed"], seen["ga"]["spoken"], seen["beta"]
    for answer in (committed, spoken, beta):
        assert answer["bytes"] == sound
        assert answer["words"] == f"You played {answer['said']}"
        assert answer["usage"] == 14
    assert committed["said"] == beta["said"] == "a sound of 200 ms"
    started = spoken["types"].index("input_audio_buffer.speech_started")
    assert started < spoken["types"].index("input_audio_buffer.speech_stopped")
    assert seen["agents"]["bytes"] == sound
    assert [role for role, _ in seen["agents"]["said"]] == ["user", "assistant"]
    assert seen["agents"]["said"][1][1].startswith("You played a sound of")


def test_openai_and_its_agents(run_client: Run) -> None:
    seen = run_client("realtime", "realtime_client.py")

    assert seen["ga"] == {
        "text": "Hello there",
        "status": "completed",
        "tool": 'The tool answered: "three cats"',
        "cancelled": "cancelled",
    }
    assert seen["beta"] == {"text": "Hello there", "status": "completed", "calls": []}
    assert seen["secrets"] == {
        "instructions": "Be brief.",
        "model": "echo",
        "text": "Hello there",
        "beta": "Hello there",
    }
    assert seen["agents"] == "Hello there"
