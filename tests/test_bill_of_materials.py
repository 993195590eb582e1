"""The bill of materials lists what the locks install, as CycloneDX has it."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from typing import Any, Final

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.programs import PROGRAM_SECONDS
from tests.wheels import ROOT

pytestmark = pytest.mark.any_database

PROGRAM: Final = ROOT / "packaging" / "bill_of_materials.py"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """Return the document as the command prints it."""
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, str(PROGRAM)],
        capture_output=True,
        check=True,
        timeout=PROGRAM_SECONDS,
    )
    bill: dict[str, Any] = json.loads(done.stdout)
    return bill


def by_scope(document: dict[str, Any], scope: str, ecosystem: str = "pypi") -> set[str]:
    return {
        component["name"]
        for component in document["components"]
        if component["scope"] == scope and component["purl"].startswith(f"pkg:{ecosystem}/")
    }


def test_it_has_the_form_of_cyclonedx(document: dict[str, Any]) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(document)) is None
    assert validator.validate_str(json.dumps({**document, "components": [{}]})) is not None


def test_it_lists_every_package_of_the_locks_with_its_files(document: dict[str, Any]) -> None:
    listed = {component["purl"]: component for component in document["components"]}
    for lock in ("runtime.txt", "heic.txt", "peers.txt", "s3.txt", "stripe.txt"):
        text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
        pins = re.findall(r"^(\S+)==(\S+)(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        assert pins
        for name, version, rest in pins:
            (place,) = listed[f"pkg:pypi/{name}@{version}"]["externalReferences"]
            assert {entry["content"] for entry in place["hashes"]} == set(
                re.findall(r"sha256:(\w+)", rest)
            )


def test_packages_of_extras_alone_are_optional(document: dict[str, Any]) -> None:
    optional, required = by_scope(document, "optional"), by_scope(document, "required")
    assert {"boto3", "matplotlib", "numpy", "stripe"} <= optional
    assert {"django", "celery", "uamp-server-uamp", "requests", "msgspec"} <= required
    assert not optional & required


def test_it_lists_what_the_pages_are_bundled_from_and_not_the_bundler(
    document: dict[str, Any],
) -> None:
    bundled = by_scope(document, "required", "npm")
    manifest = json.loads((ROOT / "requirements/browser/package.json").read_text())
    assert manifest["dependencies"].keys() <= bundled
    assert not bundled & {"esbuild", "typescript"}
    assert by_scope(document, "optional", "npm") == set()


def test_dependencies_are_those_of_the_locks(document: dict[str, Any]) -> None:
    dependencies = {entry["ref"]: set(entry["dependsOn"]) for entry in document["dependencies"]}

    def required_names(reference: str) -> set[str]:
        return {
            dependency.partition("@")[0].removeprefix("pkg:pypi/")
            for dependency in dependencies[reference]
        }

    (celery,) = (
        reference for reference in dependencies if reference.startswith("pkg:pypi/celery@")
    )
    assert {"kombu", "billiard", "vine"} <= required_names(celery)
    own_reference = document["metadata"]["component"]["bom-ref"]
    assert {"django", "uamp-server-uamp", "stripe"} <= required_names(own_reference)
    (library,) = (
        reference
        for reference in dependencies
        if reference.startswith("pkg:pypi/uamp-server-uamp@")
    )
    assert {"msgspec", "websockets"} <= required_names(library)
    # Two versions of one npm package: mermaid brings its own.
    (mermaid,) = (
        reference for reference in dependencies if reference.startswith("pkg:npm/mermaid@")
    )
    katex = {reference for reference in dependencies if reference.startswith("pkg:npm/katex@")}
    assert len(katex) == 2
    assert len(dependencies[mermaid] & katex) == 1


def test_the_same_locks_give_the_same_document(document: dict[str, Any]) -> None:
    assert runpy.run_path(str(PROGRAM))["document"](ROOT) == document
