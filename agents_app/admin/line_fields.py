"""Form fields of the admin with one entry per line, for JSON lists or objects of strings.

`LinesField` is a list. `PairsField` is an object, with a name, a separator and a value on each
line.
"""

from __future__ import annotations

from typing import Any, Final

from django import forms

ROWS: Final = 4


class _LineField(forms.Field):
    """A text area that is read line by line; empty lines are ignored."""

    widget = forms.Textarea

    def __init__(self, *, help_text: str = "") -> None:
        attributes = {"rows": ROWS, "class": "vLargeTextField", "spellcheck": "false"}
        super().__init__(
            required=False, help_text=help_text, widget=forms.Textarea(attrs=attributes)
        )

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the lines differ from the row."""
        return bool(self.prepare_value(initial) != self.prepare_value(data))


def _lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


class LinesField(_LineField):
    """A list of strings."""

    def prepare_value(self, value: Any) -> str:
        """Return the list as lines; text that was submitted is shown again unchanged."""
        return "\n".join(map(str, value)) if isinstance(value, list) else str(value or "")

    def to_python(self, value: Any) -> list[str]:
        """Return the lines."""
        return _lines(value)


class PairsField(_LineField):
    """An object of strings, with `separator` between each name and its value."""

    def __init__(self, *, separator: str, help_text: str = "") -> None:
        super().__init__(help_text=help_text)
        self.separator = separator
        self.space = " " if separator == ":" else ""

    def prepare_value(self, value: Any) -> str:
        """Return the object as lines; text that was submitted is shown again unchanged."""
        if not isinstance(value, dict):
            return str(value or "")
        return "\n".join(f"{name}{self.separator}{self.space}{of}" for name, of in value.items())

    def to_python(self, value: Any) -> dict[str, str]:
        """Return the pairs; raises ValidationError for a missing or duplicate name."""
        pairs: dict[str, str] = {}
        for line in _lines(value):
            name, separator, text = line.partition(self.separator)
            name = name.strip()
            if not separator or not name:
                form = f"NAME{self.separator}{self.space}value"
                raise forms.ValidationError(
                    f"Each line must be {form}. This one is not: {line[:80]!r}"
                )
            if name in pairs:
                raise forms.ValidationError(f"{name!r} is given twice.")
            pairs[name] = text.strip()
        return pairs
