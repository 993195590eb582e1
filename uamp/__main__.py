"""`python -m uamp` is the command `uamp` (docs/command-line.md)."""

if __name__ == "__main__":
    from uamp.command_line import main

    main()
