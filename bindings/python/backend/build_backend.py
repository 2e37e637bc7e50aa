"""How pip and others build the package: by maturin, with the licences of what is compiled into the module.

In a checkout they are written anew before each build (``tools/notices/``); a source package has them. Programs that call maturin
themselves write them by ``scripts/python licences``, and are told so at once where they are missing (``pyproject.toml``), or by
``build.rs`` where cargo builds the module for them.
"""

import pathlib
import shutil
import subprocess

import maturin
from maturin import *  # noqa: F403

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_WORKSPACE = _ROOT.parent.parent


def write_licences(*, every_target: bool = False) -> None:
    """Writes the licences, if this is a checkout; fails if they are missing otherwise.

    :param every_target: Those of any machine, as a source package needs them, and not of this one alone.
    """
    folder = _ROOT / "licences"
    if (_WORKSPACE / "tools/notices/Cargo.toml").exists():
        cargo = shutil.which("cargo")
        if cargo is None:
            raise RuntimeError("diptych wants Rust's cargo to be built: https://rustup.rs")
        shutil.rmtree(folder, ignore_errors=True)
        command = [cargo, "run", "--quiet", "--locked", "--package", "diptych-notices", "--", "write", "diptych-python"]
        target = ["--target", "all"] if every_target else []
        subprocess.run([*command, str(folder), *target], cwd=_WORKSPACE, check=True)
        # What maturin alone is refused for, where nobody wrote the licences (pyproject.toml).
        shutil.copy(_ROOT / "README.md", folder / "made-by-scripts-python-licences.md")
    if not (folder / "THIRD-PARTY.txt").exists():
        raise RuntimeError(f"{folder} has no licences of what is compiled into the module: this source package is incomplete")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # noqa: D103
    write_licences()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # noqa: D103
    write_licences()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):  # noqa: D103
    # The metadata list the files.
    write_licences()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory, config_settings=None):  # noqa: D103
    write_licences(every_target=True)
    return maturin.build_sdist(sdist_directory, config_settings)
