"""One operation in the OpenAPI document, with the scope that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import force_instance
from drf_spectacular.utils import OpenApiParameter
from rest_framework.permissions import SAFE_METHODS

from agents_app.rest.rights import ANY, EVERYTHING
from agents_app.rest.strict import StrictSerializer

if TYPE_CHECKING:
    from agents_app.rest.views import JsonView

LOCATION: Final = OpenApiParameter(
    "Location",
    str,
    OpenApiParameter.HEADER,
    description="The path of what was created.",
    response=[201],
)
"""A parameter for `extend_schema` of operations that say where to read what they create."""

_KEY_SCHEME: Final = "apiKey"


class OperationSchema(AutoSchema):
    """Adds the scope that a key needs, and that bodies have no other members."""

    def get_auth(self) -> list[dict[str, Any]]:
        """Return the ways to authenticate, with the scope as the role that a key needs."""
        roles = [self._scope] if self._scope else []
        return [
            {name: roles if name == _KEY_SCHEME else [] for name in schemes}
            for schemes in super().get_auth()
        ]

    def get_description(self) -> str:  # type: ignore[override]  # as in the base class
        """Return the docstring of the method, and the scope."""
        return f"{super().get_description()}\n\n{_needs(self._scope)}"

    def _postprocess_serializer_schema(
        self, schema: dict[str, Any], serializer: Any, direction: str
    ) -> dict[str, Any]:
        done: dict[str, Any] = super()._postprocess_serializer_schema(  # type: ignore[no-untyped-call]
            schema, serializer, direction
        )
        if isinstance(force_instance(serializer), StrictSerializer):  # type: ignore[no-untyped-call]
            done["additionalProperties"] = False
        return done

    @property
    def _scope(self) -> str:
        view = cast("JsonView", self.view)
        scope = view.read_scope if self.method in SAFE_METHODS else view.write_scope
        return EVERYTHING if scope is None else scope


def _needs(scope: str) -> str:
    if scope == ANY:
        return "Any valid key may call it."
    if scope == EVERYTHING:
        return "A key needs all rights (`*`)."
    return f"A key needs the scope `{scope}`."
