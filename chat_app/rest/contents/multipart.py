"""Multipart bodies that keep the file names chosen by their senders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http.multipartparser import MultiPartParser as DjangoMultiPartParser
from django.http.multipartparser import MultiPartParserError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import DataAndFiles, MultiPartParser

from chat_app.contents.filenames import clean_filename

if TYPE_CHECKING:
    from collections.abc import Mapping


class _NamingParser(DjangoMultiPartParser):
    """Django's parser, except that spaces and joiners of other scripts stay in names."""

    def sanitize_file_name(self, file_name: str) -> str:
        """Return the name without dangerous characters."""
        return clean_filename(file_name) or "file"


class FileParser(MultiPartParser):
    """A multipart body with a file."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> DataAndFiles[Any, Any]:
        """Return the fields and files; raises ParseError."""
        context = parser_context or {}
        request = context["request"]
        meta = {**request.META, "CONTENT_TYPE": media_type}
        try:
            parser = _NamingParser(meta, stream, request.upload_handlers, "utf-8")
            return DataAndFiles(*parser.parse())
        except MultiPartParserError as error:
            raise ParseError(f"Multipart form parse error - {error}") from error
