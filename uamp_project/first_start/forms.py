"""The forms of the setup page and of the page that connects a model."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from agents_app.outbound.keys import KEY_CHARS
from agents_app.remote.rules import NO_KEY, is_key
from chat_app.browser.site import DEFAULT_NAME, SiteNameField
from uamp_project.first_start.models import LATER, VENDORS, Choice


class ModelForm(forms.Form):
    """The choice of the model that answers for the assistant."""

    model = forms.ChoiceField()
    key = forms.CharField(required=False, max_length=KEY_CHARS)

    def __init__(self, choices: list[Choice], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["model"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 for mypy: it is declared above
        field.choices = [(choice.value, choice.label) for choice in choices]
        field.initial = choices[0].value if choices[0].value not in VENDORS else LATER

    def clean_key(self) -> str:
        """Refuse what cannot be sent as a key."""
        key = str(self.cleaned_data["key"])
        if not is_key(key):
            raise ValidationError(_(NO_KEY))
        return key

    def clean(self) -> dict[str, Any]:
        """Require a key for a vendor."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("model") in VENDORS and "key" in values and not values["key"]:
            self.add_error("key", _("Enter the key."))
        return values


class SetupForm(ModelForm):
    """The first account, the name of the server, and what answers for the assistant."""

    username = forms.CharField(max_length=150, validators=[User.username_validator])
    password = forms.CharField(max_length=4096, strip=False)
    site_name = SiteNameField(initial=DEFAULT_NAME)

    def clean(self) -> dict[str, Any]:
        """Check the password together with the name."""
        values = super().clean()
        if {"username", "password"} <= values.keys():
            try:
                validate_password(values["password"], User(username=values["username"]))
            except ValidationError as error:
                self.add_error("password", error)
        return values
