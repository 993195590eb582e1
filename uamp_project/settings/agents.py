"""Agents: their tools, models and MCP servers, delegation, and use by visitors."""

import os

from uamp_project.settings.environment import choice, integer, items, number, switch

# The agent of a session that names none (UAMP §3.1 does not name one).
UAMP_DEFAULT_AGENT = os.environ.get("UAMP_DEFAULT_AGENT", "assistant")
A2A_CARD_PROFILE = choice("A2A_CARD_PROFILE", "merged", ("merged", "v1"))
# Visitors who did not sign in may use the agents that are marked public.
UAMP_ALLOW_ANONYMOUS = switch("UAMP_ALLOW_ANONYMOUS", "1")
# Visitors may also use public agents with a model and no price: the operator's key pays for it.
UAMP_ANONYMOUS_MODELS = switch("UAMP_ANONYMOUS_MODELS", "0")
# Tools that agents of this server may be given, as dotted paths to ServerTool objects.
UAMP_SERVER_TOOLS = [
    "agents_app.tools.csv_report.csv_report",
    "agents_app.tools.fetch_page.fetch_page",
    "agents_app.tools.chat_search.search_chat",
    "agents_app.tools.edit_picture.edit_picture",
]
# Hosts besides the public internet that tools may send requests to: "host:port", private or
# plain http.
UAMP_FETCH_ALLOW_HOSTS = items("UAMP_FETCH_ALLOW_HOSTS")
# Time and bytes of one request of a tool, with its redirects.
UAMP_FETCH_SECONDS = number("UAMP_FETCH_SECONDS", 10)
UAMP_FETCH_BYTES = integer("UAMP_FETCH_BYTES", 5 * 1024 * 1024)
# Workers read the pages to which messages of people link, and show their titles.
UAMP_LINK_CARDS = switch("UAMP_LINK_CARDS", "0")
# Workers have sounds of chats written down by this server: OpenAI's audio/transcriptions.
UAMP_TRANSCRIPTION_URL = os.environ.get("UAMP_TRANSCRIPTION_URL", "")
UAMP_TRANSCRIPTION_MODEL = os.environ.get("UAMP_TRANSCRIPTION_MODEL", "whisper-1")
UAMP_TRANSCRIPTION_KEY = os.environ.get("UAMP_TRANSCRIPTION_KEY", "")
# Programs that tool sources may start (MCP over stdio), exactly as their rows name them.
UAMP_MCP_COMMANDS = items("UAMP_MCP_COMMANDS")
# Hosts of tool sources besides the public internet: "host:port", private or plain http.
UAMP_MCP_PRIVATE_HOSTS = items("UAMP_MCP_PRIVATE_HOSTS")
# Bytes of one answer of a tool source.
UAMP_MCP_RESULT_BYTES = integer("UAMP_MCP_RESULT_BYTES", 16 * 1024 * 1024)
# Hosts of models besides the public internet, which may also receive any key: "host:port".
# Ollama and LM Studio on this machine.
UAMP_MODEL_ALLOW_HOSTS = items("UAMP_MODEL_ALLOW_HOSTS", "127.0.0.1:11434,127.0.0.1:1234")
# Hosts of remote agents besides the public internet: "host:port", private or plain http.
UAMP_REMOTE_ALLOW_HOSTS = items("UAMP_REMOTE_ALLOW_HOSTS")
# Seconds that a remote agent may be silent, and the bytes and events of one of its answers.
UAMP_REMOTE_SILENT_SECONDS = number("UAMP_REMOTE_SILENT_SECONDS", 120)
UAMP_REMOTE_ANSWER_BYTES = integer("UAMP_REMOTE_ANSWER_BYTES", 32 * 1024 * 1024)
UAMP_REMOTE_EVENTS = integer("UAMP_REMOTE_EVENTS", 100_000)
# Servers that a request may pass on its way to a remote agent, this one included.
UAMP_REMOTE_HOPS = integer("UAMP_REMOTE_HOPS", 4)
# Connected agents: how many a person has, how many daemons may be connected for one, and how many
# answers one daemon works on for one agent at once.
UAMP_CONNECTED_AGENTS = integer("UAMP_CONNECTED_AGENTS", 100, least=1)
UAMP_DAEMONS_PER_AGENT = integer("UAMP_DAEMONS_PER_AGENT", 8, least=1)
UAMP_DAEMON_ANSWERS = integer("UAMP_DAEMON_ANSWERS", 16, least=1)
# A daemon that sends nothing for so long is disconnected; the reference's sends a ping every 55 s.
UAMP_DAEMON_SILENCE_SECONDS = number("UAMP_DAEMON_SILENCE_SECONDS", 150, least=0.5)
# Events of a daemon's answers on one socket: beyond the burst the server reads it at this rate.
# One that is larger than 4 KiB counts as several.
UAMP_DAEMON_EVENTS_PER_MINUTE = integer("UAMP_DAEMON_EVENTS_PER_MINUTE", 60_000, least=1)
UAMP_DAEMON_EVENTS_BURST = integer("UAMP_DAEMON_EVENTS_BURST", 10_000, least=1)
# What a daemon sent of one answer while that waits for a payment or a reader, in bytes.
UAMP_DAEMON_ANSWER_BYTES = integer("UAMP_DAEMON_ANSWER_BYTES", 8 * 1024 * 1024, least=1024)
# How many times work is delegated from agent to agent.
UAMP_DELEGATE_DEPTH = integer("UAMP_DELEGATE_DEPTH", 3)
# Send the thoughts of a delegate to the reader of the delegating agent's answer (UAMP §6.13).
DELEGATE_FORWARD_THINKING = switch("DELEGATE_FORWARD_THINKING", "1")
# Messages of the chat that the model of an agent is sent.
UAMP_HISTORY_MESSAGES = integer("UAMP_HISTORY_MESSAGES", 50)
# A long tool is stopped this long after its first start.
UAMP_TOOL_SECONDS = number("UAMP_TOOL_SECONDS", 600)
# Memory that the process of a long tool may allocate, in MiB; 0 sets no limit.
UAMP_TOOL_MEMORY_MB = integer("UAMP_TOOL_MEMORY_MB", 1024)
# A trial of an agent in the admin: its time, and the number that one operator may start.
UAMP_TRIAL_SECONDS = number("UAMP_TRIAL_SECONDS", 120)
UAMP_TRIALS_PER_MINUTE = integer("UAMP_TRIALS_PER_MINUTE", 10)
