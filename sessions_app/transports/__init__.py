"""UAMP's own transports: WebSocket, event stream (HTTP + SSE) and batch (one HTTP request).

They carry frames; `handlers` deals with sessions and turns. REST is in `rest`.
"""
