"""The ids of events that this server makes."""

import os
import random
import uuid

import psutil

from chat_app.ids import new_event_id


def test_an_event_id_is_a_random_uuid_of_its_own() -> None:
    ids = [new_event_id() for _ in range(1000)]
    parsed = [uuid.UUID(event_id) for event_id in ids]
    assert {(event_id.version, event_id.variant) for event_id in parsed} == {(4, uuid.RFC_4122)}
    assert [str(event_id) for event_id in parsed] == ids
    assert len(set(ids)) == 1000


def test_ids_do_not_repeat_when_a_library_seeds_the_random_numbers() -> None:
    random.seed(0)
    first = new_event_id()
    random.seed(0)
    assert new_event_id() != first


def test_a_forked_worker_has_ids_of_its_own() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_event_id().encode())
        os._exit(0)
    psutil.Process(child).wait(60)
    assert os.read(reading, 100).decode() != new_event_id()
