"""Agents: their tools, models and MCP servers, delegation, and use by visitors."""

from uamp_project.settings.environment import choice, integer, items, number, string, switch

# The agent of a session that names none (UAMP §3.1 defines no default).
UAMP_DEFAULT_AGENT = string("UAMP_DEFAULT_AGENT", "assistant")
A2A_CARD_PROFILE = choice("A2A_CARD_PROFILE", "merged", ("merged", "v1"))
# Visitors who have not signed in may use the agents marked as public.
UAMP_ALLOW_ANONYMOUS = switch("UAMP_ALLOW_ANONYMOUS", "1")
# Visitors may also use public agents that have a model but no price, at the operator's expense.
UAMP_ANONYMOUS_MODELS = switch("UAMP_ANONYMOUS_MODELS", "0")
# Tools that agents of this server may have, as dotted paths to ServerTool objects.
UAMP_SERVER_TOOLS = [
    "agents_app.tools.csv_report.csv_report",
    "agents_app.tools.fetch_page.fetch_page",
    "agents_app.tools.chat_search.search_chat",
    "agents_app.tools.edit_picture.edit_picture",
]
# Hosts to which tools may send requests besides the public internet: "host:port", private or over
# plain http.
UAMP_FETCH_ALLOW_HOSTS = items("UAMP_FETCH_ALLOW_HOSTS")
# The time and bytes of one tool request, including redirects.
UAMP_FETCH_SECONDS = number("UAMP_FETCH_SECONDS", 10)
UAMP_FETCH_BYTES = integer("UAMP_FETCH_BYTES", 5 * 1024 * 1024)
# Whether workers fetch the pages linked in people's messages, to show their titles.
UAMP_LINK_CARDS = switch("UAMP_LINK_CARDS", "0")
# The server to which workers send sounds of chats for transcription (OpenAI's
# audio/transcriptions).
UAMP_TRANSCRIPTION_URL = string("UAMP_TRANSCRIPTION_URL")
UAMP_TRANSCRIPTION_MODEL = string("UAMP_TRANSCRIPTION_MODEL", "whisper-1")
UAMP_TRANSCRIPTION_KEY = string("UAMP_TRANSCRIPTION_KEY")
# Programs that tool sources may start (MCP over stdio), exactly as named in their rows.
UAMP_MCP_COMMANDS = items("UAMP_MCP_COMMANDS")
# Hosts of tool sources besides the public internet: "host:port", private or over plain http.
UAMP_MCP_PRIVATE_HOSTS = items("UAMP_MCP_PRIVATE_HOSTS")
# The maximum bytes of one answer of a tool source.
UAMP_MCP_RESULT_BYTES = integer("UAMP_MCP_RESULT_BYTES", 16 * 1024 * 1024)
# Hosts of models besides the public internet, which may also receive any key: "host:port".
# Ollama and LM Studio on this machine.
UAMP_MODEL_ALLOW_HOSTS = items("UAMP_MODEL_ALLOW_HOSTS", "127.0.0.1:11434,127.0.0.1:1234")
# Hosts of remote agents besides the public internet: "host:port", private or plain http.
UAMP_REMOTE_ALLOW_HOSTS = items("UAMP_REMOTE_ALLOW_HOSTS")
# How long a remote agent may be silent, and the bytes and events of one of its answers.
UAMP_REMOTE_SILENT_SECONDS = number("UAMP_REMOTE_SILENT_SECONDS", 120)
UAMP_REMOTE_ANSWER_BYTES = integer("UAMP_REMOTE_ANSWER_BYTES", 32 * 1024 * 1024)
UAMP_REMOTE_EVENTS = integer("UAMP_REMOTE_EVENTS", 100_000)
# How many servers may forward a request to a remote agent, including this one.
UAMP_REMOTE_HOPS = integer("UAMP_REMOTE_HOPS", 4)
# Connected agents: how many a person may have, how many daemons may connect for each, and how many
# answers one daemon may work on for one agent at once.
UAMP_CONNECTED_AGENTS = integer("UAMP_CONNECTED_AGENTS", 100, minimum=1)
UAMP_DAEMONS_PER_AGENT = integer("UAMP_DAEMONS_PER_AGENT", 8, minimum=1)
UAMP_DAEMON_ANSWERS = integer("UAMP_DAEMON_ANSWERS", 16, minimum=1)
# A daemon that sends nothing for this long is disconnected; the reference daemon pings every 55 s.
UAMP_DAEMON_SILENCE_SECONDS = number("UAMP_DAEMON_SILENCE_SECONDS", 150, minimum=0.5)
# Events in a daemon's answers on one socket: beyond the burst, the server reads at this rate. An
# event larger than 4 KiB counts as several.
UAMP_DAEMON_EVENTS_PER_MINUTE = integer("UAMP_DAEMON_EVENTS_PER_MINUTE", 60_000, minimum=1)
UAMP_DAEMON_EVENTS_BURST = integer("UAMP_DAEMON_EVENTS_BURST", 10_000, minimum=1)
# The bytes buffered of one daemon answer while it waits for a payment or a reader.
UAMP_DAEMON_ANSWER_BYTES = integer("UAMP_DAEMON_ANSWER_BYTES", 8 * 1024 * 1024, minimum=1024)
# How many times work may be delegated from agent to agent.
UAMP_DELEGATE_DEPTH = integer("UAMP_DELEGATE_DEPTH", 3)
# How many answers of other agents one answer may lead to, through any number of delegations.
UAMP_DELEGATED_ANSWERS = integer("UAMP_DELEGATED_ANSWERS", 100, minimum=1)
# Whether to send a delegate's thoughts to the reader of the delegating agent's answer (UAMP §6.13).
DELEGATE_FORWARD_THINKING = switch("DELEGATE_FORWARD_THINKING", "1")
# How many messages of the chat an agent's model receives.
UAMP_HISTORY_MESSAGES = integer("UAMP_HISTORY_MESSAGES", 50)
# A long tool is stopped this long after its first start.
UAMP_TOOL_SECONDS = number("UAMP_TOOL_SECONDS", 600)
# Memory that the process of a long tool may allocate, in MiB; 0 sets no limit.
UAMP_TOOL_MEMORY_MB = integer("UAMP_TOOL_MEMORY_MB", 1024)
# The time limit of an agent's trial in the admin, and how many one operator may start per minute.
UAMP_TRIAL_SECONDS = number("UAMP_TRIAL_SECONDS", 120)
UAMP_TRIALS_PER_MINUTE = integer("UAMP_TRIALS_PER_MINUTE", 10)
