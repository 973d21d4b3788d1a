"""The agent: ironic-python-agent from Python's package index, and Ingot's extensions of it."""

import shutil
import sys
import tomllib
from pathlib import Path

from ingot.image import debian
from ingot.image.builds import run
from ingot.image.order import Architecture

REQUIREMENTS = Path(__file__).parent / "agent-requirements.txt"
EXTENSIONS = Path(__file__).parent / "agent-extensions"

_PYTHON = "3.11"
_PLACE = "opt/ipa"
_ENTRY_POINTS = "ironic_python_agent.extensions"


def install(root: Path, architecture: Architecture) -> dict[str, str]:
    """Install from outside, as the ramdisk needs neither pip nor a compiler; return the versions of all packages.

    :raises BuildError: the package index cannot be reached, or has other files than those that are expected.
    """
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
        *("--require-hashes", "--no-deps", "--only-binary=:all:", f"--python-version={_PYTHON}", "--implementation=cp"),
        *(f"--platform={name}" for name in architecture.platforms),
        f"--target={root / _PLACE}",
        f"--requirement={REQUIREMENTS}",
    )
    _install_extensions(root / _PLACE)
    # Not PYTHONPATH: the agent starts programs with an empty environment.
    (root / "usr/lib/python3/dist-packages/agent.pth").write_text(f"/{_PLACE}\n")
    compiled = ["/usr/lib/python3", f"/usr/lib/python{_PYTHON}", f"/{_PLACE}"]
    # Compiled code that does not depend on the times of files, and so not on when this was built.
    command = ("python3", "-m", "compileall", "-q", "-f", "--invalidation-mode=unchecked-hash")
    debian.run_inside(root, *command, *compiled)
    wheels = (path.name.removesuffix(".dist-info").rsplit("-", 1) for path in (root / _PLACE).glob("*.dist-info"))
    return {name.replace("_", "-"): version for name, version in sorted(wheels)}


def _install_extensions(place: Path) -> None:
    """Install our extensions of the agent as pip would, which would have to fetch a build system for it."""
    project = tomllib.loads((EXTENSIONS / "pyproject.toml").read_text())["project"]
    name = project["name"].replace("-", "_")
    for package in EXTENSIONS.glob("*/__init__.py"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package.parent, place / package.parent.name, ignore=ignored)
    about = place / f"{name}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n")
    points = "".join(f"{key} = {value}\n" for key, value in project["entry-points"][_ENTRY_POINTS].items())
    (about / "entry_points.txt").write_text(f"[{_ENTRY_POINTS}]\n{points}")
