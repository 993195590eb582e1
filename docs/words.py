"""Keep the catalogues of `locale/` in step with the texts that the product marks for translation.

`make words` writes them: `python -m docs.words` reads what Python, templates and the scripts of the
pages mark, adds it to each `.po` file, removes what is no longer marked, and compiles the
`.mo` files. It needs no GNU gettext. A new entry is empty until it is translated;
a test fails for an empty one.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from babel.messages import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).resolve().parent.parent
LOCALE: Final = ROOT / "locale"
ROOMS: Final = ("agents_app", "chat_app", "payments_app", "sessions_app", "gateway_app")
# How often a function's arguments are texts, and which of them (babel.messages.extract).
KEYWORDS: Final[Mapping[str, Any]] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}
# The beginning of a call, as far as its arguments are literal strings.
CALL: Final = re.compile(
    r"""\b((?:np|n|p)?gettext|_)\(\s*((?:(?:\s*,\s*)?u?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))+)"""
)
# The catalogues say nothing of when they were written: a run without new texts changes nothing.
WRITTEN_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def languages() -> list[str]:
    """Return the languages that have catalogues; the texts themselves are English."""
    return sorted(path.parent.name for path in LOCALE.glob("*/LC_MESSAGES"))


@cache
def catalogue_of(domain: str, language: str) -> Catalog:
    """Return the catalogue of a language and a domain with the texts that are marked now.

    The domain is `django` (Python and templates) or `djangojs` (scripts of the pages).
    """
    with _path(domain, language).open("rb") as file:
        catalogue = read_po(file, locale=language, domain=domain)
    marked = Catalog(locale=language, domain=domain)
    for method, source in _sources(domain):
        for _, message, _, context in extract(method, io.BytesIO(source), KEYWORDS):
            texts = message if isinstance(message, tuple) else (message,)
            marked.add(texts if len(texts) > 1 else texts[0], context=context)
    catalogue.update(marked, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    catalogue.creation_date = catalogue.revision_date = WRITTEN_AT
    return catalogue


def po_bytes(catalogue: Catalog) -> bytes:
    """Return a catalogue as a `.po` file."""
    file = io.BytesIO()
    write_po(file, catalogue, width=0, no_location=True, sort_output=True)
    return file.getvalue()


def mo_bytes(catalogue: Catalog) -> bytes:
    """Return a catalogue as a `.mo` file."""
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def _path(domain: str, language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / f"{domain}.po"


def _sources(domain: str) -> Iterator[tuple[str, bytes]]:
    """Yield each file of a domain: how texts are found in it, and what it has."""
    if domain == "djangojs":
        for path in sorted(
            path
            for path in (ROOT / "static").rglob("*.js")
            if not {"dist", "vendor"} & set(path.parts)
        ):
            # A template string in a template string is beyond Babel's reader of JavaScript.
            yield "javascript", _calls(path.read_text(encoding="utf-8"))
        return
    for room in (*ROOMS, "uamp_project"):
        for path in sorted((ROOT / room).rglob("*.py")):
            yield "python", path.read_bytes()
    for path in sorted((ROOT / "templates").rglob("*.html")):
        # Django writes a template as the calls that it makes for its texts.
        yield "python", _calls(templatize(path.read_text(encoding="utf-8")))


def _calls(source: str) -> bytes:
    """Return the calls alone, each on a line: what stands between them is not read."""
    return "\n".join(f"{name}({texts})" for name, texts in CALL.findall(source)).encode()


def _untranslated(catalogue: Catalog) -> list[str]:
    """Return the texts without a translation; one that depends on a number needs every form."""
    found = []
    for message in catalogue:
        forms = (message.string,) if isinstance(message.string, str) else message.string or ("",)
        if message.id and not all(forms):
            found.append(message.id if isinstance(message.id, str) else message.id[0])
    return found


def main() -> None:
    """Write the catalogues, and print which texts have no translation."""
    parser = argparse.ArgumentParser(prog="python -m docs.words", description=__doc__)
    parser.parse_args()
    for language in languages():
        for domain in ("django", "djangojs"):
            catalogue = catalogue_of(domain, language)
            path = _path(domain, language)
            path.write_bytes(po_bytes(catalogue))
            path.with_suffix(".mo").write_bytes(mo_bytes(catalogue))
            empty = _untranslated(catalogue)
            sys.stdout.write(
                f"{path.relative_to(ROOT)}: {len(catalogue)} texts, {len(empty)} to translate\n"
            )
            sys.stdout.writelines(f"  {text}\n" for text in empty)


if __name__ == "__main__":
    main()
