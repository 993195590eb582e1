"""Google's Gemini API.

Thought signatures are sent back unchanged. `config.api_version` is the first segment of the path.
The vendor's own package is not needed.
"""

import os
from urllib.parse import quote

from upp.config.provider_config import ProviderConfig
from upp.model import LLMCapabilities, LLMRequest
from upp.providers.google_answer import GeminiAnswer
from upp.providers.google_request import request_body
from upp.providers.http.failures import Failures
from upp.providers.http.transport import HttpProvider, Post

DEFAULT_API_VERSION = "v1beta"


class GoogleProvider(HttpProvider):
    """Uses GOOGLE_BASE_URL and GOOGLE_API_KEY if no address is given."""

    default_name = "google"
    default_base_url = "https://generativelanguage.googleapis.com"
    capabilities = LLMCapabilities(
        image_input=True, document_input=True, video_input=True, audio_input=True
    )

    def environment(self) -> tuple[str | None, str | None]:
        """Return the address and the key set in the environment."""
        return os.environ.get("GOOGLE_BASE_URL"), os.environ.get("GOOGLE_API_KEY")

    def post(
        self, model_id: str, request: LLMRequest, config: ProviderConfig, key: str | None
    ) -> Post:
        """Build the request; raises UPPError INVALID_REQUEST for unsupported media."""
        version = config.api_version or DEFAULT_API_VERSION
        model = quote(model_id.removeprefix("models/"), safe="")
        return Post(
            url=f"{config.base_url}/{version}/models/{model}:streamGenerateContent?alt=sse",
            body=request_body(request, provider=self.name),
            headers={"x-goog-api-key": key} if key else {},
        )

    def answer(self, request: LLMRequest, failures: Failures) -> GeminiAnswer:
        """Return an empty answer to a request."""
        return GeminiAnswer(request, failures)
