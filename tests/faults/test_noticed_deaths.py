"""The death of a server is noticed by its heartbeat, long before the lease of its answers ends."""

from __future__ import annotations

import pytest

from tests.faults.daemon_matrix import DaemonFixture
from tests.faults.kill_servers import NoServices, running_servers
from tests.faults.noticed_deaths import HALF, SETTINGS, kill_the_holder

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(400)]


def test_a_killed_server_is_noticed_by_its_heartbeat() -> None:
    try:
        with running_servers("postgres", SETTINGS) as group:
            death = kill_the_holder(DaemonFixture(group))
            rows = group.rows("sessions_app_response", "status, text")
    except NoServices as missing:
        pytest.skip(str(missing))
    assert death.end["type"] == "response.error"
    assert death.end["error"]["code"] == "interrupted"
    assert rows == [{"status": "failed", "text": HALF}]
    # The lease of the answer was still good, at half of its time.
    # The five seconds themselves are checked by `python -m tests.faults.noticed_deaths`.
    assert death.seconds < float(SETTINGS["UAMP_LEASE_SECONDS"]) / 2
