"""Configuration of a provider's server."""

import subprocess
import sys

from tests.programs import PROGRAM_SECONDS
from upp import NoRetry, ProviderConfig


def test_values_go_over_values_and_headers_one_by_one() -> None:
    retry = NoRetry()
    under = ProviderConfig(api_key="a", timeout=1, headers={"x": "1", "y": "1"})
    over = ProviderConfig(timeout=2, retry=retry, headers={"y": "2"})
    assert under.merged(over) == ProviderConfig(
        api_key="a", timeout=2, retry=retry, headers={"x": "1", "y": "2"}
    )
    assert under.merged(None) is under


def test_a_configuration_does_not_show_its_key() -> None:
    representation = repr(
        ProviderConfig(api_key="sk-secret", headers={"Authorization": "sk-secret"})
    )
    assert "sk-secret" not in representation


def test_the_protocol_itself_needs_no_provider_and_no_http() -> None:
    program = (
        "import sys, upp; print(sorted({'aiohttp', 'django', 'upp.providers'} & set(sys.modules)))"
    )
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PROGRAM_SECONDS,
    )
    assert done.stdout.strip() == "[]"
