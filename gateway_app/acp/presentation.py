"""The Agent Client Protocol as pages show it: a WebSocket conversation, or one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway_app.acp.prompts import Prompt
from gateway_app.types.example_calls import PostedCall, go_string, json_text, socket_url, websocat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.types.example_calls import Language
    from gateway_app.types.protocol_presentation import ExampleQuestion, FinishedAnswer

SESSION: Final = "session-1"
PROMPT_ID: Final = 3

_PYTHON: Final = """\
import json
import os

from websockets.sync.client import connect

key = os.environ["KEY"]
with connect(%(url)s, additional_headers={"Authorization": f"Bearer {key}"}) as socket:

    def call(number, method, **params):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        socket.send(json.dumps(request))
        for text in socket:
            print(text)
            message = json.loads(text)
            if message.get("id") == number and "method" not in message:
                return message["result"]

    call(1, "initialize", protocolVersion=1, clientCapabilities={})
    session = call(2, "session/new", cwd="/", mcpServers=[])
    call(3, "session/prompt", sessionId=session["sessionId"], prompt=%(prompt)s)"""
_JAVASCRIPT: Final = """\
const socket = new WebSocket(%(url)s + `?token=${process.env.KEY}`);
const waiting = new Map();
socket.onmessage = ({ data }) => {
  console.log(data);
  const message = JSON.parse(data);
  if (!message.method) waiting.get(message.id)?.(message.result);
};
await new Promise((resolve) => (socket.onopen = resolve));
const call = (id, method, params) => {
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  return new Promise((resolve) => waiting.set(id, resolve));
};
await call(1, "initialize", { protocolVersion: 1, clientCapabilities: {} });
const { sessionId } = await call(2, "session/new", { cwd: "/", mcpServers: [] });
await call(3, "session/prompt", { sessionId, prompt: %(prompt)s });
socket.close();"""
_GO: Final = """\
package main

import (
\t"context"
\t"encoding/json"
\t"fmt"
\t"net/http"
\t"os"

\t"github.com/coder/websocket"
)

func main() {
\tctx := context.Background()
\theaders := http.Header{"Authorization": {"Bearer " + os.Getenv("KEY")}}
\tsocket, _, err := websocket.Dial(ctx, %(url)s, &websocket.DialOptions{HTTPHeader: headers})
\tif err != nil {
\t\tpanic(err)
\t}
\tcall := func(request string) (result struct{ SessionID string }) {
\t\tif err := socket.Write(ctx, websocket.MessageText, []byte(request)); err != nil {
\t\t\tpanic(err)
\t\t}
\t\tfor {
\t\t\t_, text, err := socket.Read(ctx)
\t\t\tif err != nil {
\t\t\t\tpanic(err)
\t\t\t}
\t\t\tfmt.Println(string(text))
\t\t\tvar message struct{ Method string; Result *struct{ SessionID string } }
\t\t\tjson.Unmarshal(text, &message)
\t\t\tif message.Method == "" && message.Result != nil {
\t\t\t\treturn *message.Result
\t\t\t}
\t\t}
\t}
\tcall(%(initialize)s)
\tsession := call(%(new)s)
\tcall(fmt.Sprintf(%(ask)s, session.SessionID, %(prompt)s))
}"""


class AcpPresentation:
    """The Agent Client Protocol as pages show it."""

    key: Final = "acp"
    label: Final = "ACP"
    title: Final = "Agent Client Protocol"

    def addresses(self, base: str) -> dict[str, str]:
        """Return the addresses of the socket and of Streamable HTTP."""
        return {"websocket": socket_url(f"{base}/acp"), "http": f"{base}/acp"}

    def examples(self, question: ExampleQuestion) -> dict[Language, str]:
        """Return a prompt in a new session; for curl and the shell, a whole conversation at once.

        The latter uses webagents' `prompt/submit`, which needs no session.
        """
        url = f"{question.base}/acp"
        prompt = _prompt(question)
        literal = json_text(prompt, indent=None)
        quoted = json_text(socket_url(url))
        submitted = [{"role": "user", "content": question.text}]
        posted = PostedCall(
            url=url,
            body=_rpc(1, "prompt/submit", messages=submitted),
            headers={"Accept": "text/event-stream"},
        )
        return {
            "curl": posted.code["curl"],
            "Python": _PYTHON % {"url": quoted, "prompt": repr(prompt)},
            "JavaScript": _JAVASCRIPT % {"url": quoted, "prompt": literal},
            "Go": _GO
            % {
                "url": quoted,
                "initialize": _request(1, "initialize", protocolVersion=1),
                "new": _request(2, "session/new", cwd="/", mcpServers=[]),
                "ask": go_string(
                    '{"jsonrpc": "2.0", "id": 3, "method": "session/prompt", '
                    '"params": {"sessionId": %q, "prompt": %s}}'
                ),
                "prompt": go_string(literal),
            },
            "Shell": websocat(
                url,
                [
                    _rpc(1, "initialize", protocolVersion="1.0"),
                    _rpc(2, "prompt/submit", messages=submitted),
                ],
                wait_for='"id":2,',
            ),
        }

    def request_frames(self, question: ExampleQuestion) -> list[Any]:
        """Return the requests up to the prompt, with a placeholder for the session id."""
        return [
            _rpc(1, "initialize", protocolVersion=1, clientCapabilities={}),
            _rpc(2, "session/new", cwd="/", mcpServers=[]),
            _rpc(PROMPT_ID, "session/prompt", sessionId=SESSION, prompt=_prompt(question)),
        ]

    def response_frames(self, answer: FinishedAnswer) -> Iterator[Any]:
        """Yield the updates of the session and the result of the prompt."""
        prompt = Prompt(
            SESSION, request_id=PROMPT_ID, response_id=answer.stored.id, link=answer.link
        )
        for event in answer.events:
            yield from prompt.feed(event)


def _prompt(question: ExampleQuestion) -> list[dict[str, str]]:
    return [{"type": "text", "text": question.text}]


def _rpc(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _request(number: int, method: str, **params: Any) -> str:
    return go_string(json_text(_rpc(number, method, **params), indent=None))
