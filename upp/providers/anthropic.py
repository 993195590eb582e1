"""Anthropic's Messages API: Claude, and gateways with the same API.

Thinking is stored with its signatures and sent back unchanged. `config.api_version` is the header
`anthropic-version`. The vendor's own package is not needed.
"""

import os

from upp.config.provider_config import ProviderConfig
from upp.model import LLMCapabilities, LLMRequest
from upp.providers.anthropic_answer import MessageAnswer
from upp.providers.anthropic_request import request_body
from upp.providers.http.failures import Failures
from upp.providers.http.transport import HttpProvider, Post

DEFAULT_API_VERSION = "2023-06-01"
"""Later versions reject temperature, top_p and top_k."""


class AnthropicProvider(HttpProvider):
    """Uses ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY if no address is given."""

    default_name = "anthropic"
    default_base_url = "https://api.anthropic.com"
    capabilities = LLMCapabilities(image_input=True, document_input=True, cached_in_input=False)

    def environment(self) -> tuple[str | None, str | None]:
        """Return the address and the key set in the environment."""
        return os.environ.get("ANTHROPIC_BASE_URL"), os.environ.get("ANTHROPIC_API_KEY")

    def post(
        self, model_id: str, request: LLMRequest, config: ProviderConfig, key: str | None
    ) -> Post:
        """Build the request; raises UPPError INVALID_REQUEST for unsupported media."""
        address = (config.base_url or "").removesuffix("/v1")
        headers = {"anthropic-version": config.api_version or DEFAULT_API_VERSION}
        return Post(
            url=f"{address}/v1/messages",
            body=request_body(model_id, request, provider=self.name),
            headers=headers | ({"x-api-key": key} if key else {}),
        )

    def answer(self, request: LLMRequest, failures: Failures) -> MessageAnswer:
        """Return an empty answer to a request."""
        return MessageAnswer(request, failures)
