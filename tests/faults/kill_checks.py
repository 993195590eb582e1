"""Invariants after every kill, read from the rows and from REST."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.client import TERMINAL, output_text
from tests.faults.kill_clients import ANSWER
from tests.faults.kill_script import IDEMPOTENT, TALLY_STEPS, expected_text, said_in_round

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.kill_clients import Asker, Listener
    from tests.faults.kill_servers import ServerGroup

LIVE: Final = {"queued", "in_progress", "waiting"}
OPEN: Final = {"waiting", "queued", "running"}
UNKNOWN: Final = "Outcome unknown"

Row = dict[str, Any]


class State:
    """The tables, read at one moment after everything has settled."""

    def __init__(self, group: ServerGroup) -> None:
        self.responses = {
            row["id"]: row
            for row in group.rows(
                "sessions_app_response", "id, chat_id, status, text, fence, usage"
            )
        }
        self.calls = group.rows(
            "sessions_app_toolcall",
            "id, response_id, call_id, kind, name, status, result, is_error, attempts",
        )
        self.chats = group.rows("chat_app_chat", "id, last_seq")
        self.events = group.rows("chat_app_chatevent", "chat_id, seq, type, response_id, payload")
        self.messages = group.rows(
            "chat_app_message", "id, chat_id, role, content, content_items, response_id, status"
        )

    def calls_of(self, response_id: str) -> list[Row]:
        """Return the tool calls of a response in their order."""
        rows = [row for row in self.calls if row["response_id"] == response_id]
        return sorted(rows, key=lambda row: int(row["id"]))


def is_settled(group: ServerGroup) -> bool:
    """Return whether nothing runs and nothing waits any more."""
    live = group.rows("sessions_app_response", "status")
    calls = group.rows("sessions_app_toolcall", "status")
    return not any(row["status"] in LIVE for row in live) and not any(
        row["status"] in OPEN for row in calls
    )


def check_logs(state: State) -> list[str]:
    """Return the faults of the logs: gaps, missing or doubled ends, answers that still run."""
    wrong: list[str] = []
    seqs: dict[str, list[int]] = {}
    ends: Counter[str] = Counter()
    for event in state.events:
        seqs.setdefault(event["chat_id"], []).append(event["seq"])
        if event["type"] in TERMINAL:
            ends[event["response_id"]] += 1
    for chat in state.chats:
        numbers = sorted(seqs.get(chat["id"], []))
        if numbers != list(range(1, chat["last_seq"] + 1)):
            wrong.append(f"the log of {chat['id']} is {numbers}, its head {chat['last_seq']}")
    for response_id, row in state.responses.items():
        if ends[response_id] != 1:
            wrong.append(f"{response_id} ({row['status']}) has {ends[response_id]} ends")
        if row["status"] in LIVE:
            wrong.append(f"{response_id} is left {row['status']}")
    wrong += [f"call {c['call_id']} is left {c['status']}" for c in state.calls if _is_open(c)]
    answers = Counter(row["response_id"] for row in state.messages if row["response_id"])
    wrong += [f"{key} has {count} messages" for key, count in answers.items() if count > 1]
    return wrong


def _is_open(call: Row) -> bool:
    return call["status"] in OPEN


def check_turn(group: ServerGroup, state: State, asker: Asker, listener: Listener) -> list[str]:
    """Return the faults of one turn: its tools, its text, and the events of its clients."""
    response = state.responses.get(asker.response_id)
    if response is None:
        return [f"{asker.name}: no response {asker.response_id}"]
    calls = state.calls_of(asker.response_id)
    message = next((row for row in state.messages if row["response_id"] == asker.response_id), None)
    wrong = check_effects(group.journal(asker.tag), calls)
    wrong += _check_output(message, calls, completed=response["status"] == "completed")
    if response["status"] == "completed":
        wrong += _check_text(asker.agent, response, message, calls)
    elif response["status"] != "failed":
        wrong.append(f"no client asked for the end {response['status']}")
    wrong += _check_clients(group, asker, listener)
    return [f"{asker.name}: {line}" for line in wrong]


def check_effects(journal: Sequence[Sequence[str]], calls: Sequence[Row]) -> list[str]:
    """Return the differences between the effects of long tools and their rows."""
    wrong: list[str] = []
    rows = {row["call_id"]: row for row in calls}
    for name, call_id in {(line[0], line[1]) for line in journal}:
        if name in IDEMPOTENT and call_id not in rows:
            wrong.append(f"{name} {call_id} had an effect without a row")
    for call_id, row in rows.items():
        attempts = Counter(line[2] for line in journal if line[1] == call_id)
        effects = attempts.total()
        if (
            row["name"] == "tally"
            and row["status"] == "done"
            and (TALLY_STEPS not in attempts.values())
        ):
            wrong.append(f"tally {call_id} is done after {dict(attempts)}")
        if row["name"] != "send_once":
            continue
        if effects > 1:
            wrong.append(f"send_once {call_id} had {effects} effects")
        if row["status"] == "done" and effects != 1:
            wrong.append(f"send_once {call_id} is done with {effects} effects")
        if row["status"] not in {"done", "unknown", "cancelled"}:
            wrong.append(f"send_once {call_id} ended as {row['status']}: {row['result']}")
    return wrong


def _check_output(message: Row | None, calls: Sequence[Row], *, completed: bool) -> list[str]:
    items = message["content_items"] if message else []
    call_counts = Counter(i["tool_call"]["id"] for i in items if i["type"] == "tool_call")
    reported = Counter(i["tool_result"]["call_id"] for i in items if i["type"] == "tool_result")
    wrong = [f"call {call_id} is shown {n} times" for call_id, n in call_counts.items() if n > 1]
    wrong += [
        f"the result of {call_id} is shown {n} times" for call_id, n in reported.items() if n > 1
    ]
    wrong += [f"a result of {call_id}, which was not called" for call_id in reported - call_counts]
    if completed:
        wrong += [f"call {call_id} has no result" for call_id in call_counts - reported]
        wrong += [
            f"call {call['call_id']} of {call['name']} ({call['status']}) is lost"
            for call in calls
            if call["call_id"] not in reported
        ]
    results = {call["call_id"]: call["result"] for call in calls}
    for item in items:
        if item["type"] == "tool_result":
            data = item["tool_result"]
            stored_result = results.get(data["call_id"])
            if stored_result is not None and stored_result not in {
                data["result"],
                data["result"].strip('"'),
            }:
                wrong.append(
                    f"{data['call_id']} answered {stored_result!r}, shown is {data['result']!r}"
                )
    return wrong


def rounds_of(agent: str, calls: Sequence[Row]) -> list[list[str]]:
    """Return the results of each round of calls, as the agent received them."""
    results = {(row["name"], 0): row["result"] for row in calls}
    rounds: list[list[str]] = []
    while names := said_in_round(agent, len(rounds), rounds[-1] if rounds else [])[1]:
        rounds.append([_result(name, results) for name in names])
    return rounds


def _result(name: str, results: dict[tuple[str, int], str]) -> str:
    fixed = {"note": "noted", "lookup": ANSWER}
    return fixed[name] if name in fixed else results.get((name, 0), "")


def _check_text(agent: str, response: Row, message: Row | None, calls: Sequence[Row]) -> list[str]:
    expected = expected_text(agent, rounds_of(agent, calls))
    wrong = []
    if response["text"] != expected:
        wrong.append(f"the text is {response['text']!r}, not {expected!r}")
    if message is None or message["content"] != expected:
        wrong.append(f"the message is {message and message['content']!r}")
    return wrong


def _check_clients(group: ServerGroup, asker: Asker, listener: Listener) -> list[str]:
    """Live is replay: what arrived over all connections is what REST returns now."""
    wrong = [f"{c.name}: {c.failure!r}" for c in (asker, listener) if c.failure is not None]
    if wrong:
        return wrong
    chat_id = asker.created["chat"]
    log = {event["seq"]: event for event in group.get(f"/api/v1/chats/{chat_id}/events")["data"]}
    messages = group.get(f"/api/v1/chats/{chat_id}/messages")["data"]
    first = listener.created["seq"]
    if sorted(listener.story.log) != [seq for seq in sorted(log) if seq > first]:
        wrong.append(f"the listener received {sorted(listener.story.log)} of {sorted(log)}")
    for client in (asker, listener):
        for seq, frame in client.story.log.items():
            stored_event = log.get(seq)
            if stored_event is None or stored_event["type"] != frame["type"]:
                wrong.append(
                    f"{client.name} received {frame['type']} at {seq}, kept is {stored_event}"
                )
        end = next(f for f in client.story.log.values() if f["type"] in TERMINAL)
        reported = client.story.texts.get(asker.response_id, "")
        if end["type"] != "response.error" and reported != output_text(end):
            wrong.append(f"{client.name} received {reported!r}, the end says {output_text(end)!r}")
    rest_texts = [m["content"] for m in messages if m.get("response_id") == asker.response_id]
    received = [
        frame["message"]["content"]
        for frame in listener.story.log.values()
        if frame["type"] == "message.created" and frame["message"].get("response_id")
    ]
    if rest_texts != received:
        wrong.append(f"the listener received the message {received}, REST shows {rest_texts}")
    return wrong
