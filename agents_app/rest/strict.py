"""The base of request bodies: JSON types as in the OpenAPI document, and no unknown members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.http import QueryDict
from rest_framework import serializers

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER: Final = "Must be a number."
# The first entry that matches decides.
_JSON_TYPES: Final[Sequence[tuple[tuple[type[Any], ...], Any, str]]] = (
    ((serializers.BooleanField,), bool, "Must be true or false."),
    ((serializers.IntegerField,), (int, float), _NUMBER),
    ((serializers.FloatField,), (int, float), _NUMBER),
    ((serializers.CharField, serializers.UUIDField), str, "Must be a string."),
    ((serializers.ListField, serializers.ListSerializer), list, "Must be an array."),
    ((serializers.DictField, serializers.Serializer), Mapping, "Must be an object."),
)


class StrictSerializer(serializers.Serializer[Any]):
    """A body whose members have their JSON types; the fields alone would convert `"3"` to 3."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the values of a body.

        Raises ValidationError with every wrong member: unknown ones, those of another JSON type,
        and those whose value is invalid.
        """
        name_choices(self)
        errors: dict[str, Any] = {}
        values: dict[str, Any] = {}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(data, Mapping) or not isinstance(error.detail, dict):
                raise
            errors.update(error.detail)
        # All values of a form are strings.
        if not isinstance(data, QueryDict):
            errors.update(_wrong_types(self, data))
        unknown = sorted(map(str, set(data) - set(self.fields)))
        errors.update((name, "Unknown member.") for name in unknown)
        if errors:
            raise serializers.ValidationError(errors)
        return values


def name_choices(serializer: serializers.Serializer[Any]) -> None:
    """Make the refusal of a choice list the choices."""
    for field in serializer.fields.values():
        while isinstance(field, serializers.ListField):
            field = field.child  # noqa: PLW2901 the field of the items
        if isinstance(field, serializers.ChoiceField):
            listed = ", ".join(str(choice) for choice in field.choices if choice != "")
            field.error_messages["invalid_choice"] = f"Must be one of: {listed}."


def _wrong_types(serializer: StrictSerializer, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the errors of members that have another JSON type than their fields."""
    errors_by_name = {
        name: _wrong_type(field, data[name])
        for name, field in serializer.fields.items()
        if name in data and not field.read_only
    }
    return {name: errors for name, errors in errors_by_name.items() if errors}


def _wrong_type(field: serializers.Field[Any, Any, Any, Any], value: Any) -> Any:
    """Return the error detail of a value of another JSON type than its field; None if it fits."""
    if value is None:
        return None
    for kinds, types, message in _JSON_TYPES:
        if isinstance(field, kinds):
            # In Python, true and false are integers too.
            if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
                return [message]
            break
    if isinstance(field, serializers.ListField):
        items = {n: _wrong_type(field.child, item) for n, item in enumerate(value)}
        return {n: errors for n, errors in items.items() if errors} or None
    return None
