"""Web Push: notifications in browsers whose pages are closed (RFC 8030).

`subscriptions` stores the browsers, `news` queues the messages that deserve a notification by the
`rules`, `deliveries` and `tasks` send them, `payloads` writes them, `encryption` (RFC 8291) and
`vapid` (RFC 8292) make them readable for the browser and acceptable to its push service. The
notifications of open pages are in static/chat/notifications.
"""
