"""The answers of an assistant without a model: what this server is and what to try first."""

import re
from typing import Final

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext_lazy as _

# Words of German questions; none of them is an English word or a common abbreviation.
_GERMAN: Final = re.compile(
    r"\b(agenten|auf|bilder|bild|bitte|dateien|datei|dein|dich|eine[nr]?|ein|einladen|erwähnen|für"
    r"|gibt|gruppe|hallo|hier|hilfe|hochladen|ich|ihr|ist|kannst|kann|kein|könnt|können|lade|leute"
    r"|mein|mich|mir|mitglieder|mitglied|nicht|oder|schnittstelle|sie|sind|und|uns|wann|warum"
    r"|welchen?|wer|wie|wir|worum|wo|zum|zur|zu|über)\b"
)

_OPENING: Final = _(
    "No model is connected to me yet, so a script answers you. An operator of this server can"
    " connect one: a model server on this machine, or OpenAI, Anthropic or Google with an API key."
)
# Names are code: an agent that the answer mentioned would answer, too, and ask to be paid.
_OVERVIEW: Final = _(
    "The demo agents need no model. If the demo is installed, mention them in the chat"
    " *Welcome*:\n\n"
    "- `@echo` streams your words back\n"
    "- `@slow` gives a long answer that you can stop\n"
    "- `@paid-echo` answers for a price\n\n"
    "Add others under *Members*, or start a chat with them (+): `@thinker` shows its thinking,"
    " `@fail` breaks off, `@report` makes a report and a chart of a CSV file, `@studio` has two"
    " agents edit a picture, `@careful` asks you first, and `@checklist` keeps a list that the"
    " members of the chat share.\n\n"
    "Ask me about *agents*, *files*, *chats* or the *API* to read more."
)
_TOPICS: Final = {
    ("agent", "@", "mention", "erwähn"): _(
        "**Agents** answer when they are members of the chat and you mention them: write @ and a"
        " name. *Members* adds one to a chat. An operator creates new ones under *Admin*,"
        " *Agents*, with a model or an address elsewhere."
    ),
    (
        "file",
        "csv",
        "upload",
        "attach",
        "image",
        "picture",
        "datei",
        "hochlad",
        "bild",
        "anhang",
    ): _(
        "**Files** are attached with the paper clip, pasted, or dropped on the chat. `@report`"
        " reads a CSV file and answers with a table and a chart."
    ),
    ("chat", "invite", "group", "member", "einlad", "gruppe", "mitglied"): _(
        "**Chats** can have several people and agents. Everybody sees an answer while it is"
        " written, and a lost connection resumes where it left off."
    ),
    ("api", "protocol", "uamp", "websocket", "program", "curl", "protokoll", "schnittstelle"): _(
        "**Programs** speak UAMP 1.0 to this server: open a WebSocket at /uamp, send"
        " session.create, input.text and response.create, and read response.delta events until"
        " response.done. An API key is made under your account."
    ),
}


def guide_text(question: str) -> str:
    """Return the answer to a question, in the question's language where the server speaks it.

    It depends only on the question, so an interrupted answer continues in the same language.
    """
    text = question.casefold()
    with translation.override("de" if _GERMAN.search(text) else settings.LANGUAGE_CODE):
        topics = [str(topic) for words, topic in _TOPICS.items() if any(w in text for w in words)]
        return "\n\n".join((str(_OPENING), *(topics or [str(_OVERVIEW)])))
