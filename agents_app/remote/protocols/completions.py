"""Remote agents over Chat Completions; the address is that of the API, as https://host/v1."""

from typing import Any

from agents_app.remote.protocols.server import RemoteServer
from upp import LLMRequest
from upp.providers.http.failures import Failures
from upp.providers.openai_answer import CompletionAnswer
from upp.providers.openai_request import request_body


class CompletionsServer(RemoteServer):
    """Closing the request cancels the answer."""

    @property
    def path(self) -> str:
        """See RemoteServer."""
        return f"{self.called.url}/chat/completions"

    def body(self, name: str, request: LLMRequest) -> Any:
        """See RemoteServer."""
        return request_body(name, request, provider=self.name)

    def read(self, request: LLMRequest, failures: Failures) -> CompletionAnswer:
        """See RemoteServer."""
        return CompletionAnswer(request, failures)
