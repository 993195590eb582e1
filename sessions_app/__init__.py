"""Native UAMP: sessions, the turn, and the transports of the protocol (UAMP §13).

It knows how a turn runs, and not what an agent is (`agents_app`), how a chat is stored (`chat_app`)
or how money moves (`payments_app`). The types of the protocol are in `uamp`.
"""
