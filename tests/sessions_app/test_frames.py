"""The ids of events that this server makes."""

import uuid

from sessions_app.frames import new_event_id


def test_an_event_id_is_a_random_uuid_of_its_own() -> None:
    ids = [new_event_id() for _ in range(1000)]
    parsed = [uuid.UUID(event_id) for event_id in ids]
    assert {(one.version, one.variant) for one in parsed} == {(4, uuid.RFC_4122)}
    assert [str(one) for one in parsed] == ids
    assert len(set(ids)) == 1000
