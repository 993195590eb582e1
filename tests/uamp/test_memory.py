"""The memory of events: bounded in ids, in replies and in characters."""

import uamp
from uamp.memory import EventMemory, digest_of


def test_the_oldest_event_is_forgotten_first() -> None:
    memory = EventMemory(uamp.Limits(event_ids_remembered=2))
    for name in ("a", "b", "c"):
        memory.add(name, b"")
    assert [name in memory for name in ("a", "b", "c")] == [False, True, True]


def test_replies_to_one_event_are_bounded() -> None:
    memory = EventMemory(uamp.Limits(replies_per_event=2))
    memory.add("a", b"")
    for frame in ("1", "2", "3"):
        memory.keep_reply("a", frame)
    assert memory.replies_to("a") == ("1", "2")


def test_long_replies_push_out_older_events_but_not_their_own() -> None:
    memory = EventMemory(uamp.Limits(reply_chars_remembered=10))
    memory.add("a", b"")
    memory.add("b", b"")
    memory.keep_reply("a", "x" * 5)
    memory.keep_reply("b", "x" * 5)
    assert ("a" in memory, "b" in memory) == (True, True)
    memory.keep_reply("a", "x" * 20)
    assert ("a" in memory, "b" in memory) == (True, False)
    memory.add("c", b"")
    assert ("a" in memory, "c" in memory) == (False, True)


def test_a_forgotten_event_gives_its_characters_back() -> None:
    memory = EventMemory(uamp.Limits(reply_chars_remembered=10))
    for _ in range(5):
        memory.add("a", b"")
        memory.keep_reply("a", "x" * 10)
        memory.forget("a")
    memory.add("b", b"")
    memory.keep_reply("b", "x" * 10)
    memory.add("c", b"")
    assert "b" in memory


def test_a_digest_is_of_all_but_the_time() -> None:
    event = uamp.InputText(text="a", event_id="e", timestamp=1)
    assert digest_of(event) == digest_of(uamp.InputText(text="a", event_id="e", timestamp=2))
    assert digest_of(event) != digest_of(uamp.InputText(text="b", event_id="e", timestamp=1))
