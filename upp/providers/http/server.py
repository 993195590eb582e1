"""A vendor's server: its address, its key, and the connections to it."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

from upp.config.keys import Key, resolve_key
from upp.config.provider_config import ProviderConfig
from upp.errors import ErrorCode, UPPError
from upp.model import LLMCapabilities, LLMResponse
from upp.providers.http.connections import HttpSession, Sessions
from upp.providers.http.failures import Failures


class VendorServer(ABC):
    """One server and one key.

    Without an address, both come from the environment; a custom server gets no key from the
    environment. Connections are kept per event loop and shared by all models.
    """

    default_name: ClassVar[str]
    default_base_url: ClassVar[str]
    needs_key: ClassVar[bool] = True
    capabilities: ClassVar[LLMCapabilities]

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: Key | None = None,
        name: str | None = None,
        config: ProviderConfig | None = None,
    ) -> None:
        explicit = ProviderConfig(base_url=base_url, api_key=api_key)
        self.name = name or self.default_name
        self.config = (config or ProviderConfig()).merged(explicit)
        self._sessions = Sessions()

    @abstractmethod
    def environment(self) -> tuple[str | None, str | None]:
        """Return the address and the key set in the environment."""

    @property
    def address(self) -> str:
        """The default server, used by requests that set no other."""
        url = self.config.base_url or self.environment()[0] or self.default_base_url
        return url.rstrip("/")

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._sessions.aclose()

    def session(self, config: ProviderConfig) -> HttpSession:
        """Return the running loop's session for a configuration."""
        return self._sessions.session(config.connector)

    async def connection(self, over: ProviderConfig | None) -> tuple[ProviderConfig, str | None]:
        """Return the configuration of a request, including the address, and its key.

        A key is only sent to the server it was given for. Raises UPPError AUTHENTICATION_FAILED if
        the server needs a key and there is none.
        """
        config = self.config.merged(over)
        if over is not None and over.base_url is not None and over.api_key is None:
            config = replace(config, api_key=None)
        key = None if config.api_key is None else await self._key(config.api_key)
        if config.base_url is not None:
            return replace(config, base_url=config.base_url.rstrip("/")), key
        _, own_key = self.environment()
        key = key or (await self._key(own_key) if own_key else None)
        if key is None and self.needs_key:
            message = f"The environment has no key for {self.name}."
            raise Failures(provider=self.name).error(message, ErrorCode.AUTHENTICATION_FAILED)
        return replace(config, base_url=self.address), key

    async def _key(self, source: Key) -> str | None:
        failures = Failures(provider=self.name)
        try:
            # Keys are pasted from files and messages, with stray whitespace.
            key = (await resolve_key(source) or "").strip()
        except UPPError:
            raise
        except Exception as error:
            message = f"The key for {self.name} could not be obtained: {type(error).__name__}."
            raise failures.error(message, ErrorCode.AUTHENTICATION_FAILED) from error
        if not (key.isascii() and key.isprintable()):
            message = f"The key for {self.name} has invalid characters."
            raise failures.error(message, ErrorCode.AUTHENTICATION_FAILED)
        return key or None


def with_bounded_usage(
    response: LLMResponse, config: ProviderConfig, *, sent: int, received: int
) -> LLMResponse:
    """Return a response; limit the token counts of an untrusted server to its bytes and media."""
    if config.hidden_tokens is None:
        return response
    usage = response.usage.within(
        read=sent + (config.media_tokens or 0), written=received + config.hidden_tokens
    )
    return replace(response, usage=usage)
