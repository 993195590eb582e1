"""A program that reads the queue `tools` of a broker as fast as it can, up to the message END.

argv: the URL, the transport and its options as JSON. It prints the messages as JSON.
"""

import json
import sys
from queue import Empty
from typing import Any

from kombu import Connection

END = "end"
READY = "ready"


def main() -> None:
    """Read until END, and print what came before it."""
    url, transport, options = json.loads(sys.argv[1])
    received = []
    with Connection(url, transport=transport, transport_options=options) as connection:
        channel: Any = connection.channel()
        channel._put(READY, {})
        while True:
            try:
                message = channel._get("tools")
            except Empty:
                continue
            if message == END:
                break
            received.append(message)
    sys.stdout.write(json.dumps(received))


if __name__ == "__main__":
    main()
