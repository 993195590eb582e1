"""Quotas of clients: connections, requests in a minute, bytes in memory and in storage."""

from uamp_project.settings.environment import group_bytes, integer, networks, number

# Proxies whose X-Forwarded-For is trusted: addresses or networks, or 'unix' for a local socket.
UAMP_TRUSTED_PROXIES = networks("UAMP_TRUSTED_PROXIES")

# Open sockets and event streams in one process, of a person and of an address of visitors.
UAMP_CONNECTIONS_PER_USER = integer("UAMP_CONNECTIONS_PER_USER", 20)
UAMP_CONNECTIONS_PER_ADDRESS = integer("UAMP_CONNECTIONS_PER_ADDRESS", 50)
# Chats that one socket watches, those that were written to last, and how often this is compared.
UAMP_WATCHED_CHATS = integer("UAMP_WATCHED_CHATS", 500, least=1, most=5000)
UAMP_WATCH_SECONDS = number("UAMP_WATCH_SECONDS", 30, least=0.1)
# A client that reads nothing for so long, or stops in a request body, is disconnected.
UAMP_STALL_SECONDS = number("UAMP_STALL_SECONDS", 25, least=0.1)
# Client events of one socket: beyond the burst the server reads it at this rate.
UAMP_EVENTS_PER_MINUTE = integer("UAMP_EVENTS_PER_MINUTE", 1200, least=1)
UAMP_EVENTS_BURST = integer("UAMP_EVENTS_BURST", 120, least=1)

# The body of a request; a batch of events may carry media as base64 (uamp.Limits.frame_bytes).
UAMP_BODY_BYTES = integer("UAMP_BODY_BYTES", 12 * 1024 * 1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = UAMP_BODY_BYTES
# The bodies of all requests of one address that a process holds at once.
UAMP_BODY_BYTES_PER_ADDRESS = integer("UAMP_BODY_BYTES_PER_ADDRESS", 256 * 1024 * 1024)
# Text of one message: the inputs of a turn together, without media, in bytes.
UAMP_MESSAGE_BYTES = integer("UAMP_MESSAGE_BYTES", 256 * 1024)
# Edits of one message; each is an entry of the chat's log.
UAMP_MESSAGE_REVISIONS = integer("UAMP_MESSAGE_REVISIONS", 100)
# Emoji that one member gives a message, different emoji of a message, and pins of a chat.
UAMP_REACTIONS_PER_MEMBER = integer("UAMP_REACTIONS_PER_MEMBER", 12)
UAMP_REACTIONS_PER_MESSAGE = integer("UAMP_REACTIONS_PER_MESSAGE", 50)
UAMP_PINS_PER_CHAT = integer("UAMP_PINS_PER_CHAT", 100)
# The history with which a fork of a chat begins: messages, and bytes of text together.
UAMP_FORK_MESSAGES = integer("UAMP_FORK_MESSAGES", 2000, least=1, most=20_000)
UAMP_FORK_BYTES = integer("UAMP_FORK_BYTES", 8 * 1024 * 1024, least=1024)
# In a larger chat each person who comes would be a frame to each who is there.
UAMP_PRESENCE_MEMBERS = integer("UAMP_PRESENCE_MEMBERS", 200)
# Messages that are queued until an answer has ended: in a chat, and of one person in it.
UAMP_QUEUED_PER_CHAT = integer("UAMP_QUEUED_PER_CHAT", 50, most=1000)
UAMP_QUEUED_PER_USER = integer("UAMP_QUEUED_PER_USER", 10, most=1000)
# API keys in force that a person made, tickets not used yet, and client secrets not expired.
UAMP_KEYS_PER_USER = integer("UAMP_KEYS_PER_USER", 100, most=10_000)
UAMP_TICKETS_PER_USER = integer("UAMP_TICKETS_PER_USER", 50, least=1, most=1000)
UAMP_CLIENT_SECRETS_PER_USER = integer("UAMP_CLIENT_SECRETS_PER_USER", 100, most=10_000)
# Links that show a chat, or let people join it: how many of each kind a chat has in force, and for
# how many days one is in force where its maker says nothing, and at most.
UAMP_LINKS_PER_CHAT = integer("UAMP_LINKS_PER_CHAT", 20)
UAMP_LINK_DAYS = integer("UAMP_LINK_DAYS", 30, least=1)
UAMP_LINK_DAYS_MAX = integer("UAMP_LINK_DAYS_MAX", 365, least=1, most=36_500)
# How often in a row agents ask each other in a chat that says nothing else; 0 for never.
UAMP_AGENT_HOPS = integer("UAMP_AGENT_HOPS", 4, most=20)
# How often two agents of a chat ask each other in so many seconds.
UAMP_AGENT_PAIR_MENTIONS = integer("UAMP_AGENT_PAIR_MENTIONS", 6, least=1)
UAMP_AGENT_PAIR_SECONDS = number("UAMP_AGENT_PAIR_SECONDS", 300, least=1)
# Inputs that wait for response.create, in bytes: on a connection, and of a person.
UAMP_PENDING_BYTES_PER_CONNECTION = integer("UAMP_PENDING_BYTES_PER_CONNECTION", 32 * 1024 * 1024)
UAMP_PENDING_BYTES_PER_USER = integer("UAMP_PENDING_BYTES_PER_USER", 64 * 1024 * 1024)
# Unsent events of one client, in bytes; more are dropped and read again from the log later.
UAMP_OWED_BYTES = integer("UAMP_OWED_BYTES", 4 * 1024 * 1024)
# Sound of one Realtime socket that no response has read yet, in bytes.
UAMP_REALTIME_SOUND_BYTES = integer("UAMP_REALTIME_SOUND_BYTES", 8 * 1024 * 1024)

# Requests in any minute, over all transports: of a person, or of the visitors of an address.
UAMP_REQUESTS_PER_MINUTE = integer("UAMP_REQUESTS_PER_MINUTE", 12000)
UAMP_READS_PER_MINUTE = integer("UAMP_READS_PER_MINUTE", 3000)
UAMP_WRITES_PER_MINUTE = integer("UAMP_WRITES_PER_MINUTE", 600)
UAMP_UPLOADS_PER_MINUTE = integer("UAMP_UPLOADS_PER_MINUTE", 120)
UAMP_PICTURES_PER_MINUTE = integer("UAMP_PICTURES_PER_MINUTE", 10)
UAMP_RENDERS_PER_MINUTE = integer("UAMP_RENDERS_PER_MINUTE", 600)
UAMP_LINK_CARDS_PER_MINUTE = integer("UAMP_LINK_CARDS_PER_MINUTE", 60)
UAMP_TRANSCRIPTS_PER_MINUTE = integer("UAMP_TRANSCRIPTS_PER_MINUTE", 60)
UAMP_SEARCHES_PER_MINUTE = integer("UAMP_SEARCHES_PER_MINUTE", 120)
UAMP_EXPORTS_PER_MINUTE = integer("UAMP_EXPORTS_PER_MINUTE", 10)
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
# Webhooks of a person, over all of their chats.
UAMP_WEBHOOKS_PER_USER = integer("UAMP_WEBHOOKS_PER_USER", 50)
# How often in a day a person takes all of their data with them.
UAMP_PERSONAL_EXPORTS_PER_DAY = integer("UAMP_PERSONAL_EXPORTS_PER_DAY", 5)
# Text that a person, or the visitors of one address, have stored in a day, in bytes.
UAMP_TEXT_BYTES_PER_DAY = integer("UAMP_TEXT_BYTES_PER_DAY", 512 * 1024 * 1024)
UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY = integer("UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY", 128 * 1024 * 1024)

# Files that are stored for one person, for one chat by agents, and for all visitors together.
UAMP_STORED_BYTES_PER_USER = integer("UAMP_STORED_BYTES_PER_USER", 1024**3)
UAMP_STORED_FILES_PER_USER = integer("UAMP_STORED_FILES_PER_USER", 10000)
UAMP_ANONYMOUS_STORED_BYTES = integer("UAMP_ANONYMOUS_STORED_BYTES", 1024**3)
UAMP_ANONYMOUS_STORED_FILES = integer("UAMP_ANONYMOUS_STORED_FILES", 20000)
UAMP_UPLOAD_BYTES = integer("UAMP_UPLOAD_BYTES", 25 * 1024 * 1024)
# Smaller limits by group; "" is for who is in none of them.
UAMP_UPLOAD_BYTES_BY_GROUP = group_bytes("UAMP_UPLOAD_BYTES_BY_GROUP", most=UAMP_UPLOAD_BYTES)
UAMP_UPLOAD_HOURS = integer("UAMP_UPLOAD_HOURS", 24, least=1, most=24 * 365)
# The file of which the picture of a person is made, in bytes.
UAMP_PICTURE_BYTES = integer("UAMP_PICTURE_BYTES", 8 * 1024 * 1024, least=1024)
