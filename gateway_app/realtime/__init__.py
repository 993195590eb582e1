"""OpenAI's Realtime API over WebSocket, in both the GA and the beta dialect.

These modules are pure: `read` parses client events, `items` and `conversation` hold the state of a
socket, `session_events` and `write` build server events, `audio_fields` describes the audio
settings, and `input_sound` detects speech. `consumer` is the edge; `speech_turns` handles the
client's speech, and `item_sounds` the sounds of items. Turns and storage live elsewhere.
"""
