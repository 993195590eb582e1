"""Runs the `uamp` command as `python -m uamp` (docs/command-line.md)."""

if __name__ == "__main__":
    from uamp.command_line import main

    main()
