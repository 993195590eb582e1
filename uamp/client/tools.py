"""Typed functions as tools of the client: their schemas and calls to them (UAMP §5.14, §8.6)."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from uamp.types.session import FunctionDefinition, ToolDefinition

_REF = "#/$defs/{name}"


class ClientTool:
    """A function with annotations, sync or async, as a tool that agents can call.

    The model sees its name, the first paragraph of its docstring and its annotations. Raises
    TypeError for a function whose parameters cannot be described.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        self._arguments = _arguments_of(function)

    @property
    def definition(self) -> ToolDefinition:
        """The tool's definition, as a session declares it."""
        (schema,), parts = msgspec.json.schema_components([self._arguments], ref_template=_REF)
        parameters = parts.pop(schema["$ref"].rpartition("/")[2])
        parameters.pop("title", None)
        if parts:
            parameters["$defs"] = parts
        words = inspect.getdoc(self.function) or ""
        return ToolDefinition(
            function=FunctionDefinition(
                name=self.name,
                description=" ".join(words.partition("\n\n")[0].split()) or None,
                parameters=parameters,
            )
        )

    def bind(self, arguments: str) -> dict[str, Any]:
        """Convert the arguments of a call, JSON text, to those of the function.

        Raises ValueError with a message for the model if they do not fit.
        """
        try:
            values = msgspec.json.decode(arguments or "{}", type=self._arguments)
        except msgspec.DecodeError as error:
            raise ValueError(f"The arguments of {self.name} do not fit: {error}") from None
        return {name: getattr(values, name) for name in values.__struct_fields__}


def result_text(value: object) -> str:
    """Convert a tool's return value to the text of its result: strings as is, others as JSON.

    Raises TypeError for a value that JSON cannot represent.
    """
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _arguments_of(function: Callable[..., Any]) -> type[msgspec.Struct]:
    hints = typing.get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise TypeError(f"{function.__name__}: a tool has no *{name}; name each parameter")
        if parameter.kind is parameter.POSITIONAL_ONLY or name not in hints:
            raise TypeError(f"{function.__name__}: the parameter {name} needs a name and a type")
        required = parameter.default is parameter.empty
        fields.append((name, hints[name]) if required else (name, hints[name], parameter.default))
    return msgspec.defstruct(
        "Arguments", fields, kw_only=True, forbid_unknown_fields=True, module=__name__
    )
