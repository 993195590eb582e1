"""Sessions and turns: times, leases, the storage of turns, and concurrent answers."""

from uamp_project.settings.environment import choice, integer, number

# On a socket with several sessions, an input.text that is not followed by a response.create within
# this time starts its response (UAMP §10.4 shows no response.create); 0 turns this off.
UAMP_AUTO_RESPOND_MS = integer("UAMP_AUTO_RESPOND_MS", 1000)
# How long deltas are batched for members other than the asker.
UAMP_COALESCE_MS = integer("UAMP_COALESCE_MS", 100)
# How often the text so far of a running response is stored.
UAMP_FLUSH_MS = integer("UAMP_FLUSH_MS", 250, minimum=1)
# The sweep takes over a response or tool call whose lease was not renewed for this long.
UAMP_LEASE_SECONDS = number("UAMP_LEASE_SECONDS", 15, minimum=0.1)
UAMP_SWEEP_SECONDS = number("UAMP_SWEEP_SECONDS", 3, minimum=0.01)
# How long a response waits for a tool.result from its client.
UAMP_TOOL_WAIT_SECONDS = number("UAMP_TOOL_WAIT_SECONDS", 1800)
# How long a tool call waits for a person's approval.
UAMP_APPROVAL_SECONDS = number("UAMP_APPROVAL_SECONDS", 86400)
# A response that takes longer than this fails.
UAMP_RESPONSE_SECONDS = number("UAMP_RESPONSE_SECONDS", 1800)
# After SIGTERM, responses have this long to finish before sockets are closed with 1012.
UAMP_GRACE_SECONDS = number("UAMP_GRACE_SECONDS", 20)
# A session without a connection for this long is closed and cannot be resumed.
UAMP_SESSION_IDLE_HOURS = number("UAMP_SESSION_IDLE_HOURS", 24, maximum=1_000_000)
# A client event repeated within this time has no second effect; afterwards its record is deleted.
UAMP_REPEAT_DAYS = number("UAMP_REPEAT_DAYS", 7, maximum=36_500)
# How long messages of all chats are kept, and a visitor's private chat after its sessions closed;
# 0 keeps them for good.
UAMP_MESSAGE_DAYS = number("UAMP_MESSAGE_DAYS", 0, maximum=36_500)
UAMP_VISITOR_DAYS = number("UAMP_VISITOR_DAYS", 30, maximum=36_500)
# The session of a stateless request is deleted with its private chat after this time; 0 keeps it.
UAMP_EPHEMERAL_HOURS = number("UAMP_EPHEMERAL_HOURS", 24, maximum=1_000_000)
# 'direct' writes each turn on its own, 'group' commits overlapping turns together.
UAMP_TURN_STORE = choice("UAMP_TURN_STORE", "group", ("group", "direct"))
# 'sql' writes turns with hand-written statements, 'orm' with the readable functions that specify
# them.
UAMP_TURN_BODIES = choice("UAMP_TURN_BODIES", "sql", ("sql", "orm"))
# Active runs in one process; one more is refused with 'busy'. Runs that wait for a person, a client
# or another agent do not count.
UAMP_RUNS_PER_PROCESS = integer("UAMP_RUNS_PER_PROCESS", 2000)
# Running answers of one session; at this number, the next message is refused.
UAMP_RESPONSES_PER_SESSION = integer("UAMP_RESPONSES_PER_SESSION", 8)
# Answers that one message may start, and that one person or the visitors of one address may have at
# once in a process, including waiting ones; one more is refused with 'queue_full'.
UAMP_RESPONSES_PER_TURN = integer("UAMP_RESPONSES_PER_TURN", 20)
UAMP_RESPONSES_PER_PERSON = integer("UAMP_RESPONSES_PER_PERSON", 100)

# How many times a response state is sent to a receiver that does not accept it, at growing
# intervals.
UAMP_WEBHOOK_ATTEMPTS = integer("UAMP_WEBHOOK_ATTEMPTS", 8, minimum=1, maximum=12)
