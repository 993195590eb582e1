"""Calls between people, and the servers through which their clients find each other."""

from uamp_project.settings.environment import ice_servers, integer, number

# So long a call rings.
UAMP_CALL_RING_SECONDS = number("UAMP_CALL_RING_SECONDS", 45, least=1, most=600)
# People who take part in one call: each sends sound to every other one.
UAMP_CALL_PARTICIPANTS = integer("UAMP_CALL_PARTICIPANTS", 6, least=2, most=16)
# Whose connection is lost for so long has left the call. Processes renew it every 3 seconds.
UAMP_CALL_GRACE_SECONDS = number("UAMP_CALL_GRACE_SECONDS", 20, least=8)
# Agents that take part in one call.
UAMP_CALL_AGENTS = integer("UAMP_CALL_AGENTS", 2, least=0, most=8)
# What is said to an agent of a call at once.
UAMP_CALL_SPEECH_SECONDS = integer("UAMP_CALL_SPEECH_SECONDS", 30, least=5, most=120)
# STUN and TURN servers, as RTCPeerConnection takes them; members of chats may read them.
ICE_SERVERS = ice_servers("ICE_SERVERS")
