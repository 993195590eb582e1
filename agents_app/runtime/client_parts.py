"""The client's tools and response_format, until the model's provider has accepted them.

A strategy may send the client's tools and its response_format only after other steps were worked. A
refusal of the request that carries them first is the client's then.
"""

from collections.abc import Collection, Mapping
from typing import Any

from agents_app.runtime.failures import TOOL_RESULT
from upp import LLMRequest


class ClientParts:
    """The parts of one answer that its client sent.

    `tools` are the names of its tools, `schema` that of its response_format, `goes_on` says that an
    earlier process had requests of this answer taken, and `reads_result` that the next request is
    the first with a `tool.result`.

    The task of the run calls `sent`, `took` and `refused`, the tasks of the client's tools
    `result_came`, all on one event loop.
    """

    def __init__(
        self,
        *,
        tools: Collection[str],
        schema: Mapping[str, Any] | None,
        goes_on: bool,
        reads_result: bool,
    ) -> None:
        self._tools = frozenset(tools)
        self._schema = schema
        self._was_taken = goes_on
        self._reads_result = reads_result
        self._carried: frozenset[str] = frozenset()
        # The model that called the client's tool had been sent the tools.
        self._taken = frozenset({"tools"} if reads_result else ())

    def result_came(self) -> None:
        """Take note that the next request carries something that the client's tool returned."""
        self._reads_result = True

    def sent(self, request: LLMRequest) -> None:
        """Take note of what a request carries."""
        carried = {TOOL_RESULT} if self._reads_result else set()
        if self._schema is not None and request.structure is self._schema:
            carried.add("response_format")
        if any(tool.name in self._tools for tool in request.tools):
            carried.add("tools")
        self._carried = frozenset(carried)

    def took(self) -> None:
        """Take note that the provider answered the request."""
        self._taken |= self._carried - {TOOL_RESULT}
        self._was_taken, self._reads_result, self._carried = True, False, frozenset()

    def refused(self) -> frozenset[str]:
        """Return the parts that the provider was sent and has not taken, where it took others.

        Of the first request of an answer it is not known whose part is refused.
        """
        return self._carried - self._taken if self._was_taken else frozenset()
