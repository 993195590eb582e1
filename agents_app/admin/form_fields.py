"""Form fields of the admin for JSON columns: separate inputs instead of raw JSON.

`PartsField` has a validated input for each known member of a JSON object, and a JSON text for all
other members. `NamesField` has a checkbox for each name of a JSON list.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.forms.widgets import Script
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import mark_safe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.utils.safestring import SafeString


@dataclass(frozen=True, kw_only=True)
class FormPart:
    """One input of a PartsField: the path of its value in the object, and its validation.

    `unit` is shown after the input. `only` lists the values of the followed select for which the
    input applies (empty: all). A value equal to `unless` is not saved. A checked checkbox saves
    `means`.
    """

    path: tuple[str, ...]
    label: str
    field: forms.Field
    unit: str = ""
    only: tuple[str, ...] = ()
    unless: Any = None
    means: Any = True

    @property
    def name(self) -> str:
        """The input's name in the form."""
        return "__".join(self.path)


@dataclass(frozen=True, kw_only=True)
class _Posted:
    """The values that a browser sent: one per part, and the JSON text of the rest."""

    parts: dict[str, Any] = field(default_factory=dict)
    rest: str = ""


class PartsWidget(forms.Widget):
    """A group of labelled inputs and a JSON text; `errors` are marked at their inputs."""

    template_name = "admin/agents_app/widgets/parts.html"
    use_fieldset = True

    class Media:
        """The script that hides inputs that do not apply to the chosen provider."""

        js: ClassVar[Any] = [Script("agent_form/parts.js", type="module")]

    def __init__(self, *, follows: str = "") -> None:
        super().__init__()
        self.parts: Sequence[FormPart] = ()
        self.follows = follows
        self.errors: dict[str, str] = {}

    def __deepcopy__(self, memo: Any) -> PartsWidget:
        twin = copy.copy(self)
        twin.attrs, twin.errors = self.attrs.copy(), {}
        memo[id(self)] = twin
        return twin

    def id_for_label(self, id_: str) -> str:  # noqa: ARG002 part of the interface
        """Return no id, because each input has its own label."""
        return ""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> _Posted:
        """Return the value sent for each part, and the JSON text."""
        parts = {
            part.name: part.field.widget.value_from_datadict(data, files, f"{name}__{part.name}")
            for part in self.parts
        }
        return _Posted(parts=parts, rest=data.get(name, ""))

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:  # noqa: ARG002 part of the interface
        """Return False: an object without members sends nothing."""
        return False

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:  # noqa: ARG002 the project's templates are used
        """Return the inputs as HTML."""
        context = self.get_context(name, value, attrs)
        return mark_safe(render_to_string(self.template_name, context))  # noqa: S308 a template's

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """Return the template context, with the inputs and their values."""
        context = super().get_context(name, None, attrs)
        posted = value if isinstance(value, _Posted) else _split(value, self.parts)
        base = context["widget"]["attrs"].get("id") or f"id_{name}"
        context["follows"] = self.follows
        context["rest"] = {"value": posted.rest, "id": f"{base}__rest"}
        context["is_open"] = bool(posted.rest.strip() not in {"", "{}"})
        context["parts"] = [
            self._part_context(part, name, f"{base}__{part.name}", posted.parts.get(part.name))
            for part in self.parts
        ]
        return context

    def _part_context(self, part: FormPart, name: str, id_: str, value: Any) -> dict[str, Any]:
        error = self.errors.get(part.name, "")
        attrs: dict[str, Any] = {"id": id_, **part.field.widget_attrs(part.field.widget)}
        described = []
        if part.field.help_text:
            described.append(f"{id_}_help")
        if error:
            attrs["aria-invalid"] = "true"
            described.append(f"{id_}_error")
        if described:
            attrs["aria-describedby"] = " ".join(described)
        return {
            "id": id_,
            "label": part.label,
            "unit": part.unit,
            "help": part.field.help_text,
            "only": " ".join(part.only),
            "error": error,
            "is_checkbox": isinstance(part.field.widget, forms.CheckboxInput),
            "input": part.field.widget.render(f"{name}__{part.name}", value, attrs),
        }


class PartsField(forms.Field):
    """A JSON object shown as inputs; errors name the input's label and are marked at the input."""

    widget: PartsWidget

    def __init__(self, parts: Sequence[FormPart], *, follows: str = "", **options: Any) -> None:
        super().__init__(widget=PartsWidget(follows=follows), required=False, **options)
        self.set_parts(parts)

    def __deepcopy__(self, memo: Any) -> PartsField:
        twin: PartsField = super().__deepcopy__(memo)
        return twin

    def set_parts(self, parts: Sequence[FormPart]) -> None:
        """Replace the inputs."""
        for part in parts:
            part.field.required = False
        self.parts = self.widget.parts = tuple(parts)

    def clean(self, value: Any) -> dict[str, Any]:
        """Return the object: the inputs that are filled in, merged with the JSON text.

        Raises ValidationError for an invalid input, for text that is not a JSON object, and for a
        member that has an input but is in the text too.
        """
        posted = value if isinstance(value, _Posted) else _Posted()
        members, problems = self._rest(posted.rest)
        errors: dict[str, str] = {}
        for part in self.parts:
            try:
                input_value = part.field.clean(posted.parts.get(part.name))
            except forms.ValidationError as error:
                errors[part.name] = " ".join(error.messages)
                continue
            if input_value is False or input_value in (None, "", []) or input_value == part.unless:
                continue
            if not _put(
                members, part.path, part.means if input_value is True else _plain(input_value)
            ):
                errors[part.name] = "Also set in the JSON. Set it only once."
        self.widget.errors = errors
        labels = {part.name: part.label for part in self.parts}
        problems += [f"{labels[name]}: {message}" for name, message in errors.items()]
        if problems:
            raise forms.ValidationError(problems)
        return members

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the data sent means a different object."""
        try:
            return bool(self.clean(data) != (initial or {}))
        except forms.ValidationError:
            return True

    @staticmethod
    def _rest(text: str) -> tuple[dict[str, Any], list[str]]:
        if not text.strip():
            return {}, []
        try:
            rest = json.loads(text)
        except (ValueError, RecursionError):
            return {}, ["Enter a valid JSON object."]
        return (rest, []) if isinstance(rest, dict) else ({}, ["Enter a JSON object."])


def _plain(value: Any) -> Any:
    """Return a cleaned value as stored in JSON: amounts are decimal strings."""
    return format(value.normalize(), "f") if isinstance(value, Decimal) else value


def _put(members: dict[str, Any], path: Sequence[str], value: Any) -> bool:
    """Set the member at a path; return False if it exists or a parent is not an object."""
    inner = members
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            return False
    if path[-1] in inner:
        return False
    inner[path[-1]] = value
    return True


def _split(value: Any, parts: Sequence[FormPart]) -> _Posted:
    """Split an object of a row into its inputs and the JSON of members without one."""
    if not isinstance(value, dict):
        text = "" if value is None else json.dumps(value, ensure_ascii=False)
        return _Posted(rest=text)
    rest, inputs = copy.deepcopy(value), {}
    for part in parts:
        inner: Any = rest
        for name in part.path[:-1]:
            inner = inner.get(name) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and _fits(part, inner.get(part.path[-1])):
            stored = inner.pop(part.path[-1])
            inputs[part.name] = (
                stored == part.means
                if isinstance(part.field, forms.BooleanField)
                else part.field.prepare_value(stored)
            )
    rest = {name: inner for name, inner in rest.items() if inner != {} or value[name] == {}}
    return _Posted(parts=inputs, rest=json.dumps(rest, ensure_ascii=False) if rest else "")


def _fits(part: FormPart, value: Any) -> bool:
    """Return whether an input can show a value; other values stay in the JSON."""
    if value is None or isinstance(value, dict):
        return False
    if isinstance(part.field, forms.BooleanField):
        return bool(value == part.means)
    if isinstance(part.field, ListField):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return not isinstance(value, list | bool)


class ListField(forms.CharField):
    """A list of strings, one per line."""

    widget = forms.Textarea(attrs={"rows": 3})

    def clean(self, value: Any) -> Any:
        """Return the non-empty lines."""
        lines = (line.strip() for line in (super().clean(value) or "").splitlines())
        return [line for line in lines if line]

    def prepare_value(self, value: Any) -> Any:
        """Return the lines as one text."""
        return "\n".join(value) if isinstance(value, list) else value


class NamesField(forms.MultipleChoiceField):
    """A JSON list of names as checkboxes; the form itself reports unknown names."""

    def __init__(self, **options: Any) -> None:
        widget = forms.CheckboxSelectMultiple(attrs={"class": "names"})
        super().__init__(widget=widget, required=False, **options)

    def offer(self, groups: Mapping[str, Mapping[str, str]], stored: Any) -> None:
        """Offer names with descriptions in groups, and stored names that no longer exist."""
        offered_names = {name for names in groups.values() for name in names}
        stored = stored if isinstance(stored, list) else []
        gone = {str(name): "uncheck it" for name in stored if name not in offered_names}
        every = {**groups, **({"No longer available": gone} if gone else {})}
        self.choices = [
            (group, [(name, _described(name, text)) for name, text in names.items()])
            for group, names in every.items()
            if names
        ]

    def valid_value(self, value: Any) -> bool:  # noqa: ARG002 part of the interface
        """Return True: the form rejects unknown names with its own message."""
        return True


def _described(name: str, text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return format_html('<span class="name">{}</span> <span>{}</span>', name, first[:200])
