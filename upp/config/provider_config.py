"""The configuration of a provider's server (UPP-1.3 §4.1).

Everything here concerns the connection; options of the model go into `params`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp

    from upp.config.keys import Key
    from upp.config.retry import RetryStrategy


@dataclass(frozen=True, kw_only=True)
class ProviderConfig:
    """The connection to a provider; None stands for the provider's own default.

    `timeout` is how many seconds the server may be silent. `connector` makes the aiohttp connector
    of an event loop, replacing the provider's own (UPP's `fetch`). `headers` override the
    provider's own. `api_version` is interpreted by the provider. Without `retry`, nothing is
    retried. With `hidden_tokens`, a server's token counts are not trusted: a token is at least a
    byte of what was sent or received, except for so many tokens of reasoning that it may keep.
    `media_tokens` is how many tokens the pictures, sounds and documents of a request may count
    besides, which are compressed.
    """

    api_key: Key | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout: float | None = None
    connector: Callable[[], aiohttp.BaseConnector] | None = None
    retry: RetryStrategy | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str | None = None
    hidden_tokens: int | None = None
    media_tokens: int | None = None

    def merged(self, over: ProviderConfig | None) -> ProviderConfig:
        """Return this configuration with another one's values merged over it, header by header."""
        if over is None:
            return self
        values = {
            option.name: getattr(self if getattr(over, option.name) is None else over, option.name)
            for option in fields(self)
        }
        return ProviderConfig(**{**values, "headers": {**self.headers, **over.headers}})
