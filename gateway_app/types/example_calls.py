"""A call of an agent as code to copy: curl, Python, JavaScript, Go and a shell. Pure.

The code reads the key from the environment variable KEY and prints the agent's answer.
"""

from __future__ import annotations

import json
import pprint
import shlex
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

Language: TypeAlias = Literal["curl", "Python", "JavaScript", "Go", "Shell"]
"""The language of an example; `Shell` stands for a program other than curl."""

_KEY: Final = "Authorization: Bearer $KEY"
_COLUMNS: Final = 88
_GO_CLIENT: Final = """\
package main

import (
\t"bufio"
\t"fmt"
\t"net/http"
\t"os"
\t"strings"
)

func main() {
\tbody := %(body)s
\trequest, err := http.NewRequest("POST", %(url)s, strings.NewReader(body))
\tif err != nil {
\t\tpanic(err)
\t}
\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
%(headers)s
\tanswer, err := http.DefaultClient.Do(request)
\tif err != nil {
\t\tpanic(err)
\t}
\tdefer answer.Body.Close()
\tlines := bufio.NewScanner(answer.Body)
\tfor lines.Scan() {
\t\tfmt.Println(lines.Text())
\t}
}"""
_PYTHON_CLIENT: Final = """\
import json
import os
import urllib.request

body = %(body)s
request = urllib.request.Request(
    %(url)s,
    data=json.dumps(body).encode(),
    headers=%(headers)s | {"Authorization": f"Bearer {os.environ['KEY']}"},
)
with urllib.request.urlopen(request) as answer:
    for line in answer:
        print(line.decode(), end="")"""
_JAVASCRIPT_CLIENT: Final = """\
const body = %(body)s;
const answer = await fetch(%(url)s, {
  method: "POST",
  headers: { ...%(headers)s, Authorization: `Bearer ${process.env.KEY}` },
  body: JSON.stringify(body),
});
for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
  process.stdout.write(text);
}"""


@dataclass(frozen=True, kw_only=True, slots=True)
class PostedCall:
    """A call that is a single POST of JSON, answered with an event stream."""

    url: str
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def code(self) -> dict[Language, str]:
        """The call in each language."""
        return {
            "curl": self._curl(),
            "Python": _PYTHON_CLIENT
            % {
                "body": pprint.pformat(self.body, width=_COLUMNS, sort_dicts=False),
                "url": _quoted(self.url),
                "headers": pprint.pformat(self._headers, width=_COLUMNS, sort_dicts=False),
            },
            "JavaScript": _JAVASCRIPT_CLIENT
            % {
                "body": json_text(self.body),
                "url": _quoted(self.url),
                "headers": json.dumps(self._headers),
            },
            "Go": _GO_CLIENT
            % {
                "body": go_string(json_text(self.body)),
                "url": _quoted(self.url),
                "headers": "\n".join(
                    f"\trequest.Header.Set({_quoted(name)}, {_quoted(value)})"
                    for name, value in self._headers.items()
                ),
            },
            "Shell": self._wget(),
        }

    @property
    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", **self.headers}

    def _curl(self) -> str:
        lines = [f"curl -sN {shlex.quote(self.url)}", f'-H "{_KEY}"']
        lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self._headers.items()]
        lines.append(f"-d {shlex.quote(json_text(self.body))}")
        return " \\\n  ".join(lines)

    def _wget(self) -> str:
        lines = ["wget -qO-", f'--header "{_KEY}"']
        lines += [
            f"--header {shlex.quote(f'{name}: {value}')}" for name, value in self._headers.items()
        ]
        lines.append(f"--post-data {shlex.quote(json_text(self.body, indent=None))}")
        lines.append(shlex.quote(self.url))
        return " \\\n  ".join(lines)


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return readable JSON, with letters of every script unescaped."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def go_string(text: str) -> str:
    """Return a Go string literal, raw unless the text contains a backtick."""
    return _quoted(text) if "`" in text else f"`{text}`"


def _quoted(text: str) -> str:
    """Return a string in double quotes that is valid in Python, JavaScript and Go."""
    return json.dumps(text, ensure_ascii=False)


def socket_url(url: str) -> str:
    """Convert an HTTP address to that of a WebSocket."""
    return "ws" + url.removeprefix("http")


def websocat(url: str, frames: list[Any], *, wait_for: str) -> str:
    """Return a shell command that sends frames over a WebSocket until a reply contains a text.

    websocat sends each input line as a frame.
    """
    lines = [shlex.quote(json_text(frame, indent=None)) for frame in frames]
    sent = " \\\n  ".join(["printf '%s\\n'", *lines])
    return (
        f'{sent} \\\n  | websocat -n -H "{_KEY}" {shlex.quote(socket_url(url))} \\\n'
        f"  | sed {shlex.quote(f'/{wait_for}/q')}"
    )
