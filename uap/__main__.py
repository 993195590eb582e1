"""`python -m uap serve` connects agents to a server (docs/agents.md)."""

if __name__ == "__main__":
    from uap.serving import main

    main()
