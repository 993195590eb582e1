"""Write a picture of every screen in each variant, and a contact sheet of them.

    python -m tests.screens [--out FOLDER] [NAME ...]

The name `admin-pages` stands for every page of the admin, which are found in the running product.

Each screen is also checked with axe; what it finds is printed and shown in the sheet, and the exit
status is 1 then.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Error

from tests import services
from tests.journeys.product import running_browser, running_product
from tests.screens import admin, chats, messages, pages, people
from tests.screens.findings import findings
from tests.screens.screen import VARIANTS, Screen
from tests.screens.sheet import write_sheet
from tests.screens.stage import Stage


async def photograph(stage: Stage, screen: Screen, folder: Path) -> list[str]:
    """Write the pictures of one screen and return what axe found, each with where."""
    found = []
    for variant in VARIANTS:
        stage.variant = variant
        try:
            page = await screen.reach(stage)
        except (AssertionError, Error) as error:
            found.append(f"{variant.name}: not reached: {str(error)[:400]}")
            continue
        await page.screenshot(path=folder / f"{screen.name}.{variant.name}.png")
        found += [f"{variant.name}: {line}" for line in await findings(page)]
        await page.context.close()
    return found


async def photograph_all(
    screens: list[Screen], folder: Path, chromium: str, *, has_admin: bool
) -> int:
    """Write the pictures and the sheet; return how many findings there are."""
    found: dict[str, list[str]] = {}
    with (
        tempfile.TemporaryDirectory() as data,
        running_product(Path(data), has_workers=True) as product,
    ):
        async with running_browser(chromium) as running:
            stage = Stage(product, running, Path(data))
            await stage.prepare()
            more = await admin.admin_screens(stage) if has_admin else []
            for screen in [*screens, *more]:
                found[screen.name] = await photograph(stage, screen, folder)
                for line in found[screen.name] or ["nothing found"]:
                    sys.stdout.write(f"{screen.name}: {line}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{write_sheet(folder, found)}\n")
    return sum(map(len, found.values()))


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.screens", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these screens")
    parser.add_argument("--out", type=Path, default=Path("var/screens"), help="the folder")
    options = parser.parse_args()
    everything = (*chats.SCREENS, *messages.SCREENS, *people.SCREENS, *pages.SCREENS)
    unknown = set(options.names) - {screen.name for screen in everything} - {admin.NAME}
    if unknown:
        parser.error(f"no such screen: {', '.join(sorted(unknown))}")
    chromium = services.chromium()
    if chromium is None:
        parser.error("no Chromium: set CHROMIUM or install chromium")
    wanted = [screen for screen in everything if not options.names or screen.name in options.names]
    options.out.mkdir(parents=True, exist_ok=True)
    has_admin = not options.names or admin.NAME in options.names
    found = photograph_all(wanted, options.out, chromium, has_admin=has_admin)
    return int(asyncio.run(found) > 0)


if __name__ == "__main__":
    sys.exit(main())
