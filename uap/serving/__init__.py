"""`python -m uap serve`: uap agents that answer in the chats of a server, from anywhere.

A daemon dials in to the server and registers its agents there (docs/agents.md). It is built on
`uap.uamp_adapter` and the transports of `uamp.client`, and needs the extra `serve`.
"""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from uap.serving.program import run  # noqa: PLC0415 its dependencies are an extra
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] in {"uap", "upp"}:
            raise
        sys.exit(f"uap needs {missing.name}: pip install 'uamp-server-uap[serve]'")
    sys.exit(run())
