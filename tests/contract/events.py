"""Every event of a UAMP client and every method of a gateway, and who may send it.

The callers are those of `routes`. `owner` and `member` have a session in the chat; `stranger` and
`anonymous` have one of their own, and name the rows of the owner. Ids are of rows that are new for
each caller.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from tests import factories
from tests.contract.routes import E, M, N, O, P, Who

_PNG: Final = base64.b64encode(factories.png()).decode()
_ONE: Final = {"chat_id": "{chat_id}", "message_id": "{message_id}"}
_CALL: Final = {"chat_id": "{chat_id}", "call_id": "{voice_id}"}
EVENTS: Final[dict[str, tuple[Who, dict[str, Any]]]] = {
    "session.create": (M, {"chat": "{chat_id}", "session": {}}),
    "session.update": (E, {"session": {"instructions": "short"}}),
    "capabilities.query": (E, {}),
    "client.capabilities": (E, {"capabilities": {}}),
    "ping": (E, {}),
    "chats.watch": (P, {}),
    # A turn of one's own; what it names belongs to the chat of the session.
    "response.create": (O, {"replaces": "{answer_id}"}),
    "input.text": (E, {"text": "hello"}),
    "input.audio": (E, {"audio": "AAAA", "format": "pcm16", "is_final": True}),
    "input.image": (E, {"image": _PNG}),
    "input.video": (E, {"video": {"url": "https://example.org/a.mp4"}}),
    "input.file": (E, {"file": "QQ==", "filename": "a.txt", "mime_type": "text/plain"}),
    "input.typing": (M, {"is_typing": True, "chat_id": "{chat_id}"}),
    "response.cancel": (M, {"response_id": "{response_id}"}),
    "queue.remove": (O, {"chat_id": "{chat_id}", "item_id": "{item_id}"}),
    "queue.start": (O, {"chat_id": "{chat_id}", "item_id": "{item_id}"}),
    # The client that has the tool is another session of the owner's.
    "tool.result": (N, {"call_id": "{call_id}", "result": "1"}),
    "tool.approve": (O, {"call_id": "{asking_id}", "response_id": "{response_id}"}),
    "payment.submit": (N, {"payment": {"scheme": "balance"}, "response_id": "{response_id}"}),
    "voice.invite": (M, {"chat_id": "{chat_id}"}),
    "voice.accept": (M, {"chat_id": "{chat_id}", "call_id": "{voice_id}"}),
    "voice.decline": (M, {"chat_id": "{chat_id}", "call_id": "{voice_id}"}),
    "call.signal": (
        M,
        {**_CALL, "to": "{user_id}", "sdp": {"type": "offer", "sdp": "v=0"}},
    ),
    "call.agent_add": (M, {**_CALL, "agent": "echo"}),
    "call.agent_state": (M, {**_CALL, "agent": "echo", "state": "listens"}),
    "call.agent_remove": (M, {**_CALL, "agent": "echo"}),
    "voice.end": (M, {"chat_id": "{chat_id}", "call_id": "{voice_id}"}),
    "message.read": (M, _ONE),
    "message.edit": (O, {**_ONE, "content": "changed"}),
    "message.pin": (M, _ONE),
    "message.unpin": (M, _ONE),
    "reaction.add": (M, {**_ONE, "emoji": "\N{SPARKLES}"}),
    "reaction.remove": (M, {**_ONE, "emoji": "\N{SPARKLES}"}),
    "message.delete": (O, _ONE),
    "chat.update": (O, {"chat_id": "{chat_id}", "title": "changed"}),
    "chat.fork": (M, _ONE),
    "participant.add": (M, {"chat_id": "{chat_id}", "user": "guest"}),
    "participant.update": (
        O,
        {"chat_id": "{chat_id}", "participant_id": "{participant_id}", "trigger": "never"},
    ),
    "participant.remove": (O, {"chat_id": "{chat_id}", "participant_id": "{participant_id}"}),
    "state.update": (E, {"state": {"a": 1}}),
    "session.end": (E, {}),
}
_TASK: Final = {"id": "{task_id}"}
_OF_TASK: Final = {"taskId": "{task_id}"}
_OLD: Final = {"id": "{task_id}", "pushNotificationConfigId": "p"}
_MESSAGE: Final = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}]}
_OLD_MESSAGE: Final = {
    "kind": "message",
    "messageId": "n",
    "role": "user",
    "parts": [{"kind": "text", "text": "a"}],
}
# To a public agent, of whose tasks one is the owner's.
A2A: Final[dict[str, tuple[Who, dict[str, Any]]]] = {
    "SendMessage": (O, {"message": {**_MESSAGE, "taskId": "{task_id}"}}),
    "SendStreamingMessage": (O, {"message": {**_MESSAGE, "taskId": "{task_id}"}}),
    "GetTask": (O, _TASK),
    "ListTasks": (E, {}),
    "CancelTask": (O, _TASK),
    "SubscribeToTask": (O, _TASK),
    "GetExtendedAgentCard": (P, {}),
    "CreateTaskPushNotificationConfig": (
        O,
        {**_OF_TASK, "id": "p", "url": "https://example.org/"},
    ),
    "GetTaskPushNotificationConfig": (O, {**_OF_TASK, "id": "p"}),
    "ListTaskPushNotificationConfigs": (O, _OF_TASK),
    "DeleteTaskPushNotificationConfig": (O, {**_OF_TASK, "id": "p"}),
    "message/send": (O, {"message": {**_OLD_MESSAGE, "taskId": "{task_id}"}}),
    "message/stream": (O, {"message": {**_OLD_MESSAGE, "taskId": "{task_id}"}}),
    "tasks/get": (O, _TASK),
    "tasks/cancel": (O, _TASK),
    "tasks/resubscribe": (O, _TASK),
    "agent/getAuthenticatedExtendedCard": (P, {}),
    "tasks/pushNotificationConfig/set": (
        O,
        {**_OF_TASK, "pushNotificationConfig": {"id": "p", "url": "https://example.org/"}},
    ),
    "tasks/pushNotificationConfig/get": (O, _OLD),
    "tasks/pushNotificationConfig/list": (O, _TASK),
    "tasks/pushNotificationConfig/delete": (O, _OLD),
}
# Sockets of a private agent: the person who is admitted is its owner, who may send each frame.
SOCKETS: Final[dict[str, Who]] = {
    "/agents/{agent}/uamp": O,
    "/agents/{agent}/acp": O,
    "/agents/{agent}/realtime": O,
    "/{agent}/uamp": O,
    "/chats/{chat_id}/uamp": M,
}
