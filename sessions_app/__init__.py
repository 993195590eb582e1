"""Native UAMP: sessions, turns and the protocol's own transports (UAMP §13).

This app knows how a turn runs. It knows neither what an agent is (`agents_app`), nor how chats are
stored (`chat_app`), nor how money moves (`payments_app`). The protocol's types are in `uamp`.
"""
