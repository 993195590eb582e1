"""Quotas of clients: connections, requests per minute, bytes in memory and in storage."""

from uamp_project.settings.environment import group_bytes, integer, networks, number

# Proxies whose X-Forwarded-For is trusted: addresses or networks, or 'unix' for a local socket.
UAMP_TRUSTED_PROXIES = networks("UAMP_TRUSTED_PROXIES")

# Open sockets and event streams in one process, per person and per address of visitors.
UAMP_CONNECTIONS_PER_USER = integer("UAMP_CONNECTIONS_PER_USER", 20)
UAMP_CONNECTIONS_PER_ADDRESS = integer("UAMP_CONNECTIONS_PER_ADDRESS", 50)
# REST requests of one caller, a person or the address of visitors, that a process reads at a time;
# more wait.
UAMP_READS_PER_CALLER = integer("UAMP_READS_PER_CALLER", 16, minimum=1)
# How many chats one socket watches, the most recently active ones, and how often that selection is
# updated.
UAMP_WATCHED_CHATS = integer("UAMP_WATCHED_CHATS", 500, minimum=1, maximum=5000)
UAMP_WATCH_SECONDS = number("UAMP_WATCH_SECONDS", 30, minimum=0.1)
# A client that reads nothing for this long, or stalls in a request body, is disconnected.
UAMP_STALL_SECONDS = number("UAMP_STALL_SECONDS", 25, minimum=0.1)
# Client events of one socket: beyond the burst, the server reads at this rate.
UAMP_EVENTS_PER_MINUTE = integer("UAMP_EVENTS_PER_MINUTE", 1200, minimum=1)
UAMP_EVENTS_BURST = integer("UAMP_EVENTS_BURST", 120, minimum=1)

# The body of a request; a batch of events may carry media as base64 (uamp.Limits.frame_bytes).
UAMP_BODY_BYTES = integer("UAMP_BODY_BYTES", 12 * 1024 * 1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = UAMP_BODY_BYTES
# Bytes of request bodies that a process holds at a time for one address.
UAMP_BODY_BYTES_PER_ADDRESS = integer("UAMP_BODY_BYTES_PER_ADDRESS", 256 * 1024 * 1024)
# The text of one message: all inputs of a turn, without media, in bytes.
UAMP_MESSAGE_BYTES = integer("UAMP_MESSAGE_BYTES", 256 * 1024)
# Edits of one message; each adds an entry to the chat's log.
UAMP_MESSAGE_REVISIONS = integer("UAMP_MESSAGE_REVISIONS", 100)
# Emoji from one member on a message, different emoji on a message, and pins in a chat.
UAMP_REACTIONS_PER_MEMBER = integer("UAMP_REACTIONS_PER_MEMBER", 12)
UAMP_REACTIONS_PER_MESSAGE = integer("UAMP_REACTIONS_PER_MESSAGE", 50)
UAMP_PINS_PER_CHAT = integer("UAMP_PINS_PER_CHAT", 100)
# The history copied into a fork of a chat: messages, and the bytes of their text.
UAMP_FORK_MESSAGES = integer("UAMP_FORK_MESSAGES", 2000, minimum=1, maximum=20_000)
UAMP_FORK_BYTES = integer("UAMP_FORK_BYTES", 8 * 1024 * 1024, minimum=1024)
# In larger chats, presence is off, as every arrival would send a frame to each person present.
UAMP_PRESENCE_MEMBERS = integer("UAMP_PRESENCE_MEMBERS", 200)
# Messages queued until an answer ends: per chat, and per person in a chat.
UAMP_QUEUED_PER_CHAT = integer("UAMP_QUEUED_PER_CHAT", 50, maximum=1000)
UAMP_QUEUED_PER_USER = integer("UAMP_QUEUED_PER_USER", 10, maximum=1000)
# A person's active API keys, unused tickets and unexpired client secrets.
UAMP_KEYS_PER_USER = integer("UAMP_KEYS_PER_USER", 100, maximum=10_000)
UAMP_TICKETS_PER_USER = integer("UAMP_TICKETS_PER_USER", 50, minimum=1, maximum=1000)
UAMP_CLIENT_SECRETS_PER_USER = integer("UAMP_CLIENT_SECRETS_PER_USER", 100, maximum=10_000)
# Links that show a chat or let people join it: how many of each kind a chat may have, and for how
# many days a link is valid by default and at most.
UAMP_LINKS_PER_CHAT = integer("UAMP_LINKS_PER_CHAT", 20)
UAMP_LINK_DAYS = integer("UAMP_LINK_DAYS", 30, minimum=1)
UAMP_LINK_DAYS_MAX = integer("UAMP_LINK_DAYS_MAX", 365, minimum=1, maximum=36_500)
# How many times in a row agents may ask each other without any other message in the chat; 0 for
# never.
UAMP_AGENT_HOPS = integer("UAMP_AGENT_HOPS", 4, maximum=20)
# How many times two agents of a chat may ask each other within this many seconds.
UAMP_AGENT_PAIR_MENTIONS = integer("UAMP_AGENT_PAIR_MENTIONS", 6, minimum=1)
UAMP_AGENT_PAIR_SECONDS = number("UAMP_AGENT_PAIR_SECONDS", 300, minimum=1)
# Inputs waiting for response.create, in bytes: per connection and per person.
UAMP_PENDING_BYTES_PER_CONNECTION = integer("UAMP_PENDING_BYTES_PER_CONNECTION", 32 * 1024 * 1024)
UAMP_PENDING_BYTES_PER_USER = integer("UAMP_PENDING_BYTES_PER_USER", 64 * 1024 * 1024)
# Unsent events of one client, in bytes; any beyond that are dropped and later read from the log.
UAMP_OWED_BYTES = integer("UAMP_OWED_BYTES", 4 * 1024 * 1024)
# Sound of one Realtime socket that no response has read yet, in bytes.
UAMP_REALTIME_SOUND_BYTES = integer("UAMP_REALTIME_SOUND_BYTES", 8 * 1024 * 1024)

# Requests per minute, over all transports, per person or per address of visitors.
UAMP_REQUESTS_PER_MINUTE = integer("UAMP_REQUESTS_PER_MINUTE", 12000)
UAMP_DOCUMENTS_PER_MINUTE = integer("UAMP_DOCUMENTS_PER_MINUTE", 600)
UAMP_READS_PER_MINUTE = integer("UAMP_READS_PER_MINUTE", 3000)
UAMP_WRITES_PER_MINUTE = integer("UAMP_WRITES_PER_MINUTE", 600)
UAMP_UPLOADS_PER_MINUTE = integer("UAMP_UPLOADS_PER_MINUTE", 120)
UAMP_PICTURES_PER_MINUTE = integer("UAMP_PICTURES_PER_MINUTE", 10)
UAMP_RENDERS_PER_MINUTE = integer("UAMP_RENDERS_PER_MINUTE", 600)
UAMP_LINK_CARDS_PER_MINUTE = integer("UAMP_LINK_CARDS_PER_MINUTE", 60)
UAMP_TRANSCRIPTS_PER_MINUTE = integer("UAMP_TRANSCRIPTS_PER_MINUTE", 60)
UAMP_TRANSCRIPT_SECONDS_PER_DAY = integer("UAMP_TRANSCRIPT_SECONDS_PER_DAY", 4 * 3600)
UAMP_SEARCHES_PER_MINUTE = integer("UAMP_SEARCHES_PER_MINUTE", 120)
UAMP_EXPORTS_PER_MINUTE = integer("UAMP_EXPORTS_PER_MINUTE", 10)
UAMP_PROOFS_PER_MINUTE = integer("UAMP_PROOFS_PER_MINUTE", 30)
UAMP_FORKS_PER_MINUTE = integer("UAMP_FORKS_PER_MINUTE", 10)
UAMP_SHARED_PAGES_PER_MINUTE = integer("UAMP_SHARED_PAGES_PER_MINUTE", 120)
UAMP_SHARED_FILES_PER_MINUTE = integer("UAMP_SHARED_FILES_PER_MINUTE", 600)
UAMP_DISCOVERY_PER_MINUTE = integer("UAMP_DISCOVERY_PER_MINUTE", 600)
UAMP_HTTP_EVENTS_PER_MINUTE = integer("UAMP_HTTP_EVENTS_PER_MINUTE", 1200)
UAMP_ANONYMOUS_HTTP_EVENTS_PER_MINUTE = integer("UAMP_ANONYMOUS_HTTP_EVENTS_PER_MINUTE", 300)
UAMP_SESSIONS_PER_MINUTE = integer("UAMP_SESSIONS_PER_MINUTE", 240)
UAMP_ANONYMOUS_SESSIONS_PER_MINUTE = integer("UAMP_ANONYMOUS_SESSIONS_PER_MINUTE", 60)
UAMP_RESPONSES_PER_MINUTE = integer("UAMP_RESPONSES_PER_MINUTE", 60)
UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = integer("UAMP_ANONYMOUS_RESPONSES_PER_MINUTE", 20)
UAMP_PAYMENTS_PER_MINUTE = integer("UAMP_PAYMENTS_PER_MINUTE", 60)
UAMP_ANONYMOUS_PAYMENTS_PER_MINUTE = integer("UAMP_ANONYMOUS_PAYMENTS_PER_MINUTE", 20)
UAMP_CALL_EVENTS_PER_MINUTE = integer("UAMP_CALL_EVENTS_PER_MINUTE", 120)
UAMP_ANONYMOUS_CALL_EVENTS_PER_MINUTE = integer("UAMP_ANONYMOUS_CALL_EVENTS_PER_MINUTE", 20)
UAMP_CALLS_PER_MINUTE = integer("UAMP_CALLS_PER_MINUTE", 12)
UAMP_CALL_SIGNALS_PER_MINUTE = integer("UAMP_CALL_SIGNALS_PER_MINUTE", 1200)
UAMP_CALL_SPEECHES_PER_MINUTE = integer("UAMP_CALL_SPEECHES_PER_MINUTE", 30)
UAMP_WEBHOOKS_PER_MINUTE = integer("UAMP_WEBHOOKS_PER_MINUTE", 120)
UAMP_ANONYMOUS_WEBHOOKS_PER_MINUTE = integer("UAMP_ANONYMOUS_WEBHOOKS_PER_MINUTE", 20)
# Webhooks per person, over all of their chats.
UAMP_WEBHOOKS_PER_USER = integer("UAMP_WEBHOOKS_PER_USER", 50)
# How often per day a person may export all of their data.
UAMP_PERSONAL_EXPORTS_PER_DAY = integer("UAMP_PERSONAL_EXPORTS_PER_DAY", 5)
# Mails with links: of a requester, to a recipient, and of one requester to one recipient.
UAMP_MAILS_PER_DAY = integer("UAMP_MAILS_PER_DAY", 20)
UAMP_MAILS_TO_ONE_PER_DAY = integer("UAMP_MAILS_TO_ONE_PER_DAY", 5)
# The text, in bytes, that a person or the visitors of one address may store per day.
UAMP_TEXT_BYTES_PER_DAY = integer("UAMP_TEXT_BYTES_PER_DAY", 512 * 1024 * 1024)
UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY = integer("UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY", 128 * 1024 * 1024)

# Stored files: per person, per chat by agents, and for all visitors together.
UAMP_STORED_BYTES_PER_USER = integer("UAMP_STORED_BYTES_PER_USER", 1024**3)
UAMP_STORED_FILES_PER_USER = integer("UAMP_STORED_FILES_PER_USER", 10000)
UAMP_ANONYMOUS_STORED_BYTES = integer("UAMP_ANONYMOUS_STORED_BYTES", 1024**3)
UAMP_ANONYMOUS_STORED_FILES = integer("UAMP_ANONYMOUS_STORED_FILES", 20000)
UAMP_UPLOAD_BYTES = integer("UAMP_UPLOAD_BYTES", 25 * 1024 * 1024)
# Smaller limits by group; "" applies to people in none of them.
UAMP_UPLOAD_BYTES_BY_GROUP = group_bytes("UAMP_UPLOAD_BYTES_BY_GROUP", maximum=UAMP_UPLOAD_BYTES)
UAMP_UPLOAD_HOURS = integer("UAMP_UPLOAD_HOURS", 24, minimum=1, maximum=24 * 365)
# The file from which a person's picture is made, in bytes.
UAMP_PICTURE_BYTES = integer("UAMP_PICTURE_BYTES", 8 * 1024 * 1024, minimum=1024)
