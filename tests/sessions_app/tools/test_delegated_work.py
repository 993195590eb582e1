"""The amount of work that an answer has given to other agents."""

from __future__ import annotations

import pytest

from sessions_app.tools.delegated_calls import count_work
from tests import factories

pytestmark = pytest.mark.django_db


def test_work_counts_from_the_moment_that_it_was_given() -> None:
    ada, agent = factories.user("ada"), factories.agent("boss")
    chat = factories.chat(ada, agent)
    response = factories.response(agent, chat)
    call = factories.tool_call(response)
    assert count_work(response.pk) == 0
    # The answer of the other agent has not begun yet.
    session = factories.session(ada, chat, parent_call=call)
    assert count_work(response.pk) == 1
    below = factories.tool_call(factories.response(agent, chat, session=session))
    factories.session(ada, chat, parent_call=below)
    assert count_work(response.pk) == 2
