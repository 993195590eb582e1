"""The client's tools and response_format, tracked until the model's provider has accepted them.

A strategy may run other steps before it sends the client's tools and response_format. If the
provider then refuses the first request that carries them, the client's input is at fault.
"""

from collections.abc import Collection, Mapping
from typing import Any

from agents_app.runtime.failures import TOOL_RESULT
from upp import LLMRequest


class ClientParts:
    """The parts of one answer's requests that come from its client.

    `tools` are the names of the client's tools and `schema` is the schema of its response_format.
    `goes_on` means that the provider accepted requests of this answer in an earlier process, and
    `reads_result` that the next request is the first with a `tool.result`.

    The run's task calls `sent`, `took` and `refused`; the tasks of the client's tools call
    `result_came`. All run on one event loop.
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
        # The model must have been sent the tools, as it has called one.
        self._taken = frozenset({"tools"} if reads_result else ())

    def result_came(self) -> None:
        """Note that the next request carries a result of the client's tool."""
        self._reads_result = True

    def sent(self, request: LLMRequest) -> None:
        """Note which of the client's parts a request carries."""
        carried = {TOOL_RESULT} if self._reads_result else set()
        if self._schema is not None and request.structure is self._schema:
            carried.add("response_format")
        if any(tool.name in self._tools for tool in request.tools):
            carried.add("tools")
        self._carried = frozenset(carried)

    def took(self) -> None:
        """Note that the provider answered the request."""
        self._taken |= self._carried - {TOOL_RESULT}
        self._was_taken, self._reads_result, self._carried = True, False, frozenset()

    def refused(self) -> frozenset[str]:
        """Return the parts of a refused request that the provider has not accepted before.

        Empty for the first request of an answer, where the fault cannot be attributed.
        """
        return self._carried - self._taken if self._was_taken else frozenset()
