"""Routes of A2A: both versions over both bindings."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.gateway_app.equality.questions import (
    FUNCTION,
    RESULT,
    Question,
    Shown,
    post,
    wait_for_text,
)

if TYPE_CHECKING:
    from tests.gateway_app.equality.questions import Place

Task = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TaskBinding:
    """A version of A2A over a binding.

    `method` sends a message, over JSON-RPC as its name and over HTTP as the end of the path;
    `cancel` likewise. `parts` is the member of a message that has its parts.
    """

    method: str
    cancel: str
    is_old: bool = False
    is_rpc: bool = True
    parts: str = "parts"
    path: str = "a2a"

    def ask(self, place: Place, question: Question) -> Shown:
        """Send a message, and what its task asks for."""
        if question.stop_after:
            return self._stopped(place, question)
        metadata: dict[str, Any] = {"uamp_tools": [FUNCTION]} if question.has_tool else {}
        task = self._send(place, question, question.text, metadata=metadata)
        if _state(task) == "INPUT_REQUIRED" and question.token:
            paid = {
                "x402.payment.status": "payment-submitted",
                "x402.payment.payload": {"x402Version": 2, "payload": {"token": question.token}},
            }
            task = self._send(place, question, "", taskId=task["id"], metadata=paid)
        elif _state(task) == "INPUT_REQUIRED":
            task = self._send(place, question, RESULT, taskId=task["id"])
        assert _state(task) == "COMPLETED", task
        return Shown(text=self._text(task))

    def _stopped(self, place: Place, question: Question) -> Shown:
        task = self._send(place, question, question.text, is_waiting=False)
        wait_for_text(question.stop_after)
        if self.is_rpc:
            params = {"id": task["id"]}
            ended = self._call(place, question, self.cancel, params)
        else:
            ended = self._call(place, question, f"tasks/{task['id']}{self.cancel}", {})
        assert _state(ended) in {"CANCELED", "CANCELLED"}
        return Shown(text=self._text(ended))

    def _send(
        self,
        place: Place,
        question: Question,
        text: str,
        *,
        is_waiting: bool = True,
        **members: Any,
    ) -> Task:
        part = {"kind": "text", "text": text} if self.is_old and self.is_rpc else {"text": text}
        message: dict[str, Any] = {
            "messageId": uuid.uuid4().hex,
            "role": "user" if self.is_old and self.is_rpc else "ROLE_USER",
            self.parts: [part],
            **members,
        }
        params: dict[str, Any] = {"message": message}
        if not is_waiting:
            now = {"blocking": False} if self.is_old else {"returnImmediately": True}
            params["configuration"] = now
        result = self._call(place, question, self.method, params)
        task: Task = result.get("task", result)
        return task

    def _call(self, place: Place, question: Question, method: str, params: Any) -> Any:
        base = f"/agents/{question.agent}/{self.path}"
        if not self.is_rpc:
            return post(place, f"{base}/{method}", params, question.headers).json()
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = post(place, base, body, question.headers).json()
        assert "result" in answer, answer
        return answer["result"]

    def _text(self, task: Task) -> str:
        parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
        return "".join(part.get("text", "") for part in parts)


def _state(task: Task) -> str:
    state: str = task["status"]["state"]
    return state.removeprefix("TASK_STATE_").replace("-", "_").upper()


RPC = TaskBinding(method="SendMessage", cancel="CancelTask")
OLD_RPC = TaskBinding(method="message/send", cancel="tasks/cancel", is_old=True)
REST = TaskBinding(method="message:send", cancel=":cancel", is_rpc=False, path="a2a/rest")
OLD_REST = TaskBinding(
    method="message:send",
    cancel=":cancel",
    is_rpc=False,
    is_old=True,
    path="a2a/rest/v1",
    parts="content",
)
