"""Any server with OpenAI's chat completions API: OpenAI, Ollama, vLLM, Groq, gateways.

One dialect covers them all; omissions and deviations of servers are tolerated. The vendor's own
package is not needed.
"""

import os

from upp.config.provider_config import ProviderConfig
from upp.model import LLMCapabilities, LLMRequest
from upp.providers.http.failures import Failures
from upp.providers.http.transport import HttpProvider, Post
from upp.providers.openai_answer import CompletionAnswer
from upp.providers.openai_request import request_body


class OpenAICompatProvider(HttpProvider):
    """Chat completions; uses OPENAI_BASE_URL and OPENAI_API_KEY if no address is given.

    A local server may need no key.
    """

    default_name = "openai_compat"
    default_base_url = "https://api.openai.com/v1"
    needs_key = False
    capabilities = LLMCapabilities(image_input=True, document_input=True, audio_input=True)

    def environment(self) -> tuple[str | None, str | None]:
        """Return the address and the key set in the environment."""
        return os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")

    def post(
        self, model_id: str, request: LLMRequest, config: ProviderConfig, key: str | None
    ) -> Post:
        """Build the request; raises UPPError INVALID_REQUEST for unsupported media."""
        return Post(
            url=f"{config.base_url}/chat/completions",
            body=request_body(model_id, request, provider=self.name),
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )

    def answer(self, request: LLMRequest, failures: Failures) -> CompletionAnswer:
        """Return an empty answer to a request."""
        return CompletionAnswer(request, failures)
