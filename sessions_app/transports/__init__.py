"""The native ways in: a WebSocket, an event stream (HTTP + SSE) and a batch (one HTTP request).

They carry frames and know nothing of sessions or turns; `handlers` does. REST is in `rest`.
"""
