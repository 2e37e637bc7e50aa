"""The licences in the wheel, against the tree of crates that cargo resolves."""

import importlib.metadata
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT


#: How the names of the project's own crates begin.
OURS = ("diptych", "naga-opencl")


@pytest.fixture(scope="module")
def licences():
    """The files of licences that were installed, by name."""
    files = importlib.metadata.files("diptych") or []
    return {file.name: file.read_text() for file in files if "licences" in file.parts}


def named(edges):
    """Names and versions of the crates that others made."""
    command = ["cargo", "tree", "--locked", "--package", "diptych-python", "--prefix", "none", "--format", "{p}"]
    tree = subprocess.run([*command, "--edges", edges], cwd=ROOT, check=True, capture_output=True, text=True)
    lines = {tuple(line.split()[:2]) for line in tree.stdout.splitlines() if line}
    return {f"{name} {version.lstrip('v')}" for name, version in lines if not name.startswith(OURS)}


def test_the_wheel_has_the_projects_licences(licences):
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert licences[name] == (ROOT / name).read_text()
    metadata = importlib.metadata.metadata("diptych")
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert set(metadata.get_all("License-File")) == {f"licences/{name}" for name in licences}


def test_every_crate_of_the_module_is_named_with_its_licence(licences):
    page, _, texts = licences["THIRD-PARTY.txt"].partition("\n-----")
    lines = page.splitlines()
    crates = named("normal,no-proc-macro")
    assert len(crates) > 50
    for crate in crates:
        [place] = [place for place, line in enumerate(lines) if line.startswith(f"{crate}: ")]
        numbers = lines[place + 1].split("[")[1:]
        assert numbers, crate
        for number in numbers:
            assert f"\n[{number.rstrip(' ]')}]\n" in texts, crate
    # Nothing is named that only builds it.
    others = {crate.rsplit(" ", 1)[0] for crate in named("build") | named("normal")} - {
        crate.rsplit(" ", 1)[0] for crate in crates
    }
    assert "syn" in others and not any(line.startswith("syn ") for line in lines)
    assert "Copyright" in texts and "Permission is hereby granted" in texts and "Apache License" in texts
    assert "standard library of rustc" in page


def test_the_standard_librarys_notices_are_there_if_the_compiler_has_them(licences):
    root = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    notices = Path(root) / "share/doc/rust/COPYRIGHT-library.html"
    assert notices.exists() == ("RUST-LIBRARY.html" in licences)
    if notices.exists():
        assert licences["RUST-LIBRARY.html"] == notices.read_text()
