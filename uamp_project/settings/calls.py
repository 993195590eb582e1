"""Calls between people, and the servers through which their clients connect."""

from uamp_project.settings.environment import ice_servers, integer, number

# How long a call rings.
UAMP_CALL_RING_SECONDS = number("UAMP_CALL_RING_SECONDS", 45, minimum=1, maximum=600)
# The most people in one call, since each sends audio to every other one.
UAMP_CALL_PARTICIPANTS = integer("UAMP_CALL_PARTICIPANTS", 6, minimum=2, maximum=16)
# After losing the connection for this long, a person has left the call. Processes renew their
# presence every 3 seconds.
UAMP_CALL_GRACE_SECONDS = number("UAMP_CALL_GRACE_SECONDS", 20, minimum=8)
# The most agents in one call.
UAMP_CALL_AGENTS = integer("UAMP_CALL_AGENTS", 2, minimum=0, maximum=8)
# The longest speech sent to an agent of a call at once.
UAMP_CALL_SPEECH_SECONDS = integer("UAMP_CALL_SPEECH_SECONDS", 30, minimum=5, maximum=120)
# STUN and TURN servers, in the format of RTCPeerConnection; members of chats may read them.
ICE_SERVERS = ice_servers("ICE_SERVERS")
