"""Sessions and turns: their times and leases, how turns are stored, and answers at once."""

from uamp_project.settings.environment import choice, integer, number

# On a socket with several sessions an input.text without a response.create within this time
# starts its response (UAMP §10.4 prints no response.create); 0 turns it off.
UAMP_AUTO_RESPOND_MS = integer("UAMP_AUTO_RESPOND_MS", 1000)
# Deltas for members other than the asker are collected this long.
UAMP_COALESCE_MS = integer("UAMP_COALESCE_MS", 100)
# The text so far of a running response is stored this often.
UAMP_FLUSH_MS = integer("UAMP_FLUSH_MS", 250, least=1)
# The sweep takes over a response or tool call whose process renewed no lease for this long.
UAMP_LEASE_SECONDS = number("UAMP_LEASE_SECONDS", 15, least=0.1)
UAMP_SWEEP_SECONDS = number("UAMP_SWEEP_SECONDS", 3, least=0.01)
# How long a response waits for a tool.result of its client.
UAMP_TOOL_WAIT_SECONDS = number("UAMP_TOOL_WAIT_SECONDS", 1800)
# How long a tool call waits for a person's approval.
UAMP_APPROVAL_SECONDS = number("UAMP_APPROVAL_SECONDS", 86400)
# A response that takes longer fails.
UAMP_RESPONSE_SECONDS = number("UAMP_RESPONSE_SECONDS", 1800)
# SIGTERM: responses get this long to finish before the sockets are closed with 1012.
UAMP_GRACE_SECONDS = number("UAMP_GRACE_SECONDS", 20)
# A session that no connection holds for this long is closed and cannot be resumed.
UAMP_SESSION_IDLE_HOURS = number("UAMP_SESSION_IDLE_HOURS", 24, most=1_000_000)
# A client event that is repeated within this time has no second effect; then it is deleted.
UAMP_REPEAT_DAYS = number("UAMP_REPEAT_DAYS", 7, most=36_500)
# A visitor's private chat is deleted this long after its sessions closed; 0 keeps it.
# Messages of all chats are erased when they are so old; 0 keeps them.
UAMP_MESSAGE_DAYS = number("UAMP_MESSAGE_DAYS", 0, most=36_500)
UAMP_VISITOR_DAYS = number("UAMP_VISITOR_DAYS", 30, most=36_500)
# The session of a stateless request is deleted with its private chat after this time; 0 keeps it.
UAMP_EPHEMERAL_HOURS = number("UAMP_EPHEMERAL_HOURS", 24, most=1_000_000)
# 'direct' writes each turn by itself, 'group' commits overlapping turns together.
UAMP_TURN_STORE = choice("UAMP_TURN_STORE", "group", ("group", "direct"))
# 'sql' writes turns with hand-written statements, 'orm' with the readable functions that specify
# them.
UAMP_TURN_BODIES = choice("UAMP_TURN_BODIES", "sql", ("sql", "orm"))
# Runs that work in one process at once; one more is refused with 'busy'. Runs that wait for a
# person, a client or another agent do not count.
UAMP_RUNS_PER_PROCESS = integer("UAMP_RUNS_PER_PROCESS", 2000)
# Running answers of one session; with so many, the next message is refused.
UAMP_RESPONSES_PER_SESSION = integer("UAMP_RESPONSES_PER_SESSION", 8)
# Answers that one message starts, and that one person, or the visitors of one address, have at once
# in a process, waiting ones included; one more is refused with 'queue_full'.
UAMP_RESPONSES_PER_TURN = integer("UAMP_RESPONSES_PER_TURN", 20)
UAMP_RESPONSES_PER_PERSON = integer("UAMP_RESPONSES_PER_PERSON", 100)

# A state of a response that its receiver does not take is sent so many times, with growing pauses.
UAMP_WEBHOOK_ATTEMPTS = integer("UAMP_WEBHOOK_ATTEMPTS", 8, least=1, most=12)
