"""The software bill of materials of the server as CycloneDX 1.6, made from the locks.

`python packaging/bill_of_materials.py [FILE]` writes it, to standard output by default (`make
sbom`). It lists the server, its libraries, the Python packages of the locks, of which those that
only an extra requires are optional, and the npm packages that static/vendor is bundled from. The
same locks give the same document: it has no time, and its serial number is a digest. It needs the
standard library alone, because it is also made where the wheel is built.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

ROOT: Final = Path(__file__).resolve().parent.parent
LIBRARIES: Final = ("uamp", "upp", "uap")
_PIN: Final = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>.+?))?(?: \\)?$"
)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


class Materials:
    """Components by reference, and the references that each one depends on."""

    def __init__(self) -> None:
        self.components: dict[str, dict[str, Any]] = {}
        self.required_by: dict[str, set[str]] = {}
        # What requires a package beside those that the lock names.
        self.libraries: dict[str, set[str]] = {}

    def add(self, component: dict[str, Any], requirers: set[str]) -> None:
        """Add a component, or more that require it; `requirers` are references or names."""
        reference = str(component["bom-ref"])
        self.components.setdefault(reference, component)
        self.required_by.setdefault(reference, set()).update(requirers)

    def dependencies(self) -> dict[str, set[str]]:
        """Return the references that each reference depends on."""
        named: dict[str, set[str]] = {reference: {reference} for reference in self.components}
        for reference, component in self.components.items():
            if reference.startswith("pkg:pypi/"):
                named.setdefault(component["name"], set()).add(reference)
        found: dict[str, set[str]] = {reference: set() for reference in self.components}
        for reference, requirers in self.required_by.items():
            for requirer in requirers:
                for one in named.get(requirer, ()):
                    found[one].add(reference)
        return found


def document(root: Path = ROOT) -> dict[str, Any]:
    """Return the bill of materials."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    server = _component("pypi", project["name"], project["version"], type="application")
    server["licenses"] = [{"expression": project["license"]}]
    materials = Materials()
    materials.add(server, set())
    _add_libraries(materials, root, server)
    extras = {name for names in project["optional-dependencies"].values() for name in names}
    for lock in _locks(root):
        _add_lock(materials, lock, server)
    _add_browser(materials, root, server)
    return _written(materials, server, {_canonical(name) for name in extras})


def _locks(root: Path) -> list[Path]:
    """Return the locks of what the server and its extras install: runtime.txt and its additions."""
    folder = root / "requirements"
    more = [
        file.with_suffix(".txt")
        for file in sorted(folder.glob("*.in"))
        if "-c runtime.txt" in file.read_text(encoding="utf-8").splitlines()
    ]
    return [folder / "runtime.txt", *more]


def _add_libraries(materials: Materials, root: Path, server: dict[str, Any]) -> None:
    for library in LIBRARIES:
        text = (root / "packaging" / library / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        component = _component("pypi", project["name"], project["version"])
        component["licenses"] = [{"expression": project["license"]}]
        materials.add(component, {server["bom-ref"]})
        # The server requires the client of `uamp`.
        client = project.get("optional-dependencies", {}).get("client", [])
        for requirement in [*project["dependencies"], *client]:
            materials.libraries.setdefault(_canonical(requirement), set()).add(component["bom-ref"])


def _add_lock(materials: Materials, lock: Path, server: dict[str, Any]) -> None:
    """Add the packages of a lock; the comments below each say what requires it."""
    blocks = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8"))
    for block in blocks:
        pin = _PIN.match(block.partition("\n")[0])
        if pin is None:
            continue
        component = _component("pypi", pin["name"], pin["version"])
        if pin["marker"]:
            component["properties"] = [{"name": "python:marker", "value": pin["marker"]}]
        # A lock lists the files of a release that may be installed.
        hashes = [{"alg": "SHA-256", "content": digest} for digest in _HASH.findall(block)]
        place = {"type": "distribution", "url": component["purl"], "hashes": hashes}
        component["externalReferences"] = [place]
        comments = re.findall(r"^ +# +(?:via)? *(.*)$", block, re.MULTILINE)
        names = (name.partition("[")[0] for name in comments if not name.startswith("-"))
        requirers = {name for name in names if name}
        if any(name.startswith("-r ") for name in comments):
            requirers.add(server["bom-ref"])
        requirers |= materials.libraries.get(pin["name"], set())
        materials.add(component, requirers)


def _add_browser(materials: Materials, root: Path, server: dict[str, Any]) -> None:
    """Add the npm packages that the bundles are made of, and not what makes them."""
    text = (root / "requirements" / "browser" / "package-lock.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    references = {}
    for path, package in packages.items():
        if path and not package.get("dev"):
            name = package.get("name") or path.rpartition("node_modules/")[2]
            component = _component("npm", name, package["version"])
            if license_ := package.get("license"):
                component["licenses"] = [{"expression": license_}]
            digest = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
            component["hashes"] = [{"alg": "SHA-512", "content": digest}]
            references[path] = component["bom-ref"]
            materials.add(component, set())
    for path, package in packages.items():
        requirer = references.get(path) if path else server["bom-ref"]
        if requirer is not None:
            for name in package.get("dependencies", {}):
                materials.required_by[references[_installed(packages, path, name)]].add(requirer)


def _installed(packages: dict[str, Any], path: str, name: str) -> str:
    """Return the directory of a package's dependency: npm uses the nearest one above it."""
    while f"{path}/node_modules/{name}".lstrip("/") not in packages:
        path = path.rpartition("/node_modules/")[0]
    return f"{path}/node_modules/{name}".lstrip("/")


def _component(ecosystem: str, name: str, version: str, **fields: str) -> dict[str, Any]:
    scope, _, plain = name.rpartition("/")
    path = f"{quote(scope, safe='')}/{plain}" if scope else plain
    purl = f"pkg:{ecosystem}/{path}@{version}"
    return {
        "type": "library",
        **fields,
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }


def _written(materials: Materials, server: dict[str, Any], extras: set[str]) -> dict[str, Any]:
    dependencies = materials.dependencies()
    required = _reached(materials, dependencies, server["bom-ref"], extras)
    listed = []
    for reference, component in sorted(materials.components.items()):
        if component is not server:
            scope = "required" if reference in required else "optional"
            listed.append({**component, "scope": scope})
    content = {
        "metadata": {"component": server},
        "components": listed,
        "dependencies": [
            {"ref": reference, "dependsOn": sorted(found)}
            for reference, found in sorted(dependencies.items())
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **content,
    }


def _reached(
    materials: Materials, dependencies: dict[str, set[str]], start: str, extras: set[str]
) -> set[str]:
    """Return the requirements that are installed without extras."""
    reached, waiting = {start}, [start]
    while waiting:
        reference = waiting.pop()
        for found in dependencies[reference] - reached:
            is_extra = reference == start and materials.components[found]["name"] in extras
            if not is_extra:
                reached.add(found)
                waiting.append(found)
    return reached


def _canonical(requirement: str) -> str:
    """Return the name in a requirement, as locks write it."""
    name = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement


def main(arguments: list[str]) -> None:
    """Write the document."""
    text = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
    if arguments:
        Path(arguments[0]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
