"""Every text marked for translation has one, with the same placeholders."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import pytest

from docs import words

CATALOGUES = [(d, language) for language in words.languages() for d in ("django", "djangojs")]
PLACE = re.compile(r"%\(\w+\)[sd]|<[^>]+>")
# Strings and comments of a script, which may contain the end of a template.
OTHER = re.compile(
    r'"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'"
    r"|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)
OPENING = re.compile(r"(?:html)?`")
VALUE = "\x00"
LETTERS = re.compile(r"[A-Za-z]{2}")
READ_ATTRIBUTES = {"alt", "aria-description", "aria-label", "placeholder", "title"}
# Names, and code, which is the same in every language.
SAME_IN_EVERY_LANGUAGE = {"SHA-256", "UAMP", "JSON", "Ctrl", "Enter", "Esc", "Shift", "Tab", "UTC"}


@pytest.mark.parametrize(("domain", "language"), CATALOGUES)
def test_a_catalogue_has_the_marked_texts_and_no_others(domain: str, language: str) -> None:
    path = words.LOCALE / language / "LC_MESSAGES" / f"{domain}.po"
    catalogue = words.catalogue_of(domain, language)

    assert words.po_bytes(catalogue) == path.read_bytes(), "run: make words"
    assert words.mo_bytes(catalogue) == path.with_suffix(".mo").read_bytes(), "run: make words"


@pytest.mark.parametrize(("domain", "language"), CATALOGUES)
def test_every_text_is_translated_with_its_values(domain: str, language: str) -> None:
    wrong = []
    for message in words.catalogue_of(domain, language):
        if not message.id:
            continue
        texts = [message.id] if isinstance(message.id, str) else message.id
        translated = message.string or ""
        translations = [translated] if isinstance(translated, str) else translated
        places = set(chain.from_iterable(PLACE.findall(text) for text in texts))
        if (
            message.fuzzy
            or not all(translations)
            or any(set(PLACE.findall(text)) != places for text in translations)
        ):
            wrong.append(message.id)
    assert wrong == []


def glossary() -> list[tuple[str, str]]:
    """Return the words of docs/glossary.md with their German translations."""
    text = (words.LOCALE.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Za-z -]+) \| ([^|]+) \|", text, re.MULTILINE)
    return [row for row in rows if row[0] != "word"]


@pytest.mark.parametrize(("word", "german"), glossary())
def test_one_word_has_one_translation(word: str, german: str) -> None:
    # Verbs and parts of compounds start with the same letters.
    beginning = re.sub(r"ung$|e$", "", german).lower()
    stems = (beginning, "aufruf", "ruf") if word == "call" else (beginning,)
    used = re.compile(rf"\b{word}s?\b", re.IGNORECASE)
    count, wrong = 0, []
    for domain in ("django", "djangojs"):
        for message in words.catalogue_of(domain, "de"):
            texts = [message.id] if isinstance(message.id, str) else message.id
            translation = message.string or ""
            translated = [translation] if isinstance(translation, str) else translation
            if not any(used.search(PLACE.sub("", text)) for text in texts):
                continue
            count += 1
            plain = [PLACE.sub("", text).lower() for text in translated]
            wrong += [text for text in plain if not any(stem in text for stem in stems)]
    assert count, "no text has this word"
    assert wrong == []


class Shown(HTMLParser):
    """Collects the texts that a template shows or has read aloud unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        """Collect the text between two tags or values."""
        self.texts += data.split(VALUE)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes that people read, or have read aloud."""
        del tag
        for name, value in attrs:
            if name in READ_ATTRIBUTES and value:
                self.texts += value.split(VALUE)


def templates_of(source: str) -> list[str]:
    """Return a script's template strings tagged `html`, with each value as one character."""
    templates: list[str] = []
    open_templates: list[tuple[bool, list[str]]] = []
    # What ends the current region: a template string, or the braces of a value in one.
    ends: list[str] = []
    at = 0
    while at < len(source):
        character = source[at]
        if ends and ends[-1] == "`":
            if character == "\\":
                at += 1
            elif character == "`":
                ends.pop()
                is_html, parts = open_templates.pop()
                templates += ["".join(parts)] if is_html else []
            elif source.startswith("${", at):
                open_templates[-1][1].append(VALUE)
                ends.append("}")
                at += 1
            else:
                open_templates[-1][1].append(character)
        elif (opening := OPENING.match(source, at)) is not None:
            ends.append("`")
            open_templates.append((opening[0] != "`", []))
            at = opening.end() - 1
        elif (other := OTHER.match(source, at)) is not None:
            at = other.end() - 1
        elif character == "{" and ends:
            ends.append("}")
        elif character == "}" and ends:
            ends.pop()
        at += 1
    return templates


def unmarked(source: str) -> list[str]:
    """Return the texts in a script's templates that are shown untranslated."""
    parser = Shown()
    for template in templates_of(source):
        parser.feed(template)
        parser.close()
        parser.reset()
    texts = (text.strip(" .,:()·@$") for text in parser.texts)
    return [text for text in texts if LETTERS.search(text) and text not in SAME_IN_EVERY_LANGUAGE]


def test_the_scan_finds_unmarked_texts() -> None:
    source = (
        """html`<p title="Hint">${a ? html`<b>Bold</b>` : `${gettext("Yes")}`} rest ${"`}"}</p>`"""
    )

    assert sorted(unmarked(source)) == ["Bold", "Hint", "rest"]


# What Django inserts into or leaves out of a page: tags, values, comments and marked texts.
PUT_IN = re.compile(
    r"{%\s*blocktranslate.*?endblocktranslate\s*%}"
    r"|{%\s*comment.*?endcomment\s*%}"
    r"|{% block body_class %}.*?{% endblock %}"
    r"|{[%{#].*?[%}#]}",
    re.DOTALL,
)
NOT_SHOWN = re.compile(r"<(script|style|code)\b.*?</\1>", re.DOTALL)


def unmarked_in_page(source: str) -> list[str]:
    """Return the texts in a page's template that are shown untranslated."""
    parser = Shown()
    parser.feed(PUT_IN.sub(VALUE, NOT_SHOWN.sub("", source)))
    parser.close()
    texts = (text.strip(" .,:()·@$") for text in parser.texts)
    return [text for text in texts if LETTERS.search(text) and text not in SAME_IN_EVERY_LANGUAGE]


def test_the_scan_finds_unmarked_texts_in_a_page() -> None:
    source = """<p title="Hint" class="a">{% translate "Yes" %} rest {{ value }}</p>
        <code>x = yes</code>
        {% blocktranslate %}<b>Marked</b>{% endblocktranslate %}<img alt="{{ name }} there">"""

    assert sorted(text.strip() for text in unmarked_in_page(source)) == ["Hint", "rest", "there"]


# Operators' pages are in English, except for Django's own admin texts in each language.
PAGES = sorted(
    path.relative_to(words.ROOT).as_posix()
    for path in (words.ROOT / "templates").rglob("*.html")
    if "admin" not in path.parts
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_no_text_that_is_not_marked(name: str) -> None:
    assert unmarked_in_page((words.ROOT / Path(name)).read_text(encoding="utf-8")) == []


SCRIPTS = sorted(
    path.relative_to(words.ROOT).as_posix()
    for path in (words.ROOT / "static").rglob("*.js")
    if not {"dist", "vendor"} & set(path.parts)
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_shows_no_text_that_is_not_marked(name: str) -> None:
    assert unmarked((words.ROOT / Path(name)).read_text(encoding="utf-8")) == []
