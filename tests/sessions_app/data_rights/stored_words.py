"""The places where a word is stored: rows of every table, and files."""

from __future__ import annotations

from pathlib import Path

from django.apps import apps
from django.conf import settings


def rows_with(word: str) -> list[str]:
    """Return the rows of all tables that have a word, but those of the audit's reasons."""
    return [
        f"{model._meta.label}: {values}"
        for model in apps.get_models()
        for values in model._default_manager.values()
        if word in repr(values)
    ]


def files_with(word: str) -> list[Path]:
    """Return the stored files that have a word."""
    root = Path(settings.MEDIA_ROOT)
    return [
        path for path in root.rglob("*") if path.is_file() and word.encode() in path.read_bytes()
    ]
