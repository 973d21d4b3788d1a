"""The command ingot-image, which builds agent ramdisks and verifies images.

    ingot-image build --output DIRECTORY [--profile PROFILE] [--arch ARCHITECTURE] ...
    ingot-image verify DIRECTORY
    ingot-image profiles

Exit status: 0 it is done; 1 it failed, and the message says why; 2 the command line is to be corrected.
"""

import argparse
import datetime
import importlib.metadata
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingot.common import errors, masking
from ingot.image import checksums, inputs, manifest, publishing, ramdisk
from ingot.image.builds import BuildError, forget_unused
from ingot.image.order import ARCHITECTURES, Architecture, Order
from ingot.image.profiles import load_all

_DESCRIPTION = "Builds agent ramdisks for machines, and verifies images."
_VIRTUAL_MEDIA = "boot_method=vmedia"
_FOLDER = "agent-images"
_MEBIBYTE = 2**20


def _find_cache() -> Path:
    """Return where results are kept unless an option says otherwise."""
    own = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("INGOT_CACHE") or Path(own, "ingot"))


_BUILD = (
    "Build kernel, ramdisk, ESP and ISO image of the agent from Debian packages and Python's package index. Results "
    "are kept, and found again by what they are made from. Root is not needed where the user has ranges of ids in "
    "/etc/subuid and /etc/subgid."
)
_SEVERAL: dict[str, Any] = {"action": "append", "default": []}
_OPTIONS: dict[str, dict[str, Any]] = {
    "--output": {
        "type": Path,
        "required": True,
        "metavar": "DIRECTORY",
        "help": "where the files are put; what ingot-image put there earlier is replaced",
    },
    "--profile": {"choices": sorted(load_all()), "default": "server", "help": "kind of machine (default: %(default)s)"},
    "--arch": {"choices": sorted(ARCHITECTURES), "default": "amd64", "help": "processor (default: %(default)s)"},
    "--extra-package": {
        **_SEVERAL,
        "type": inputs.parse_package,
        "metavar": "NAME",
        "help": "a further package of Debian; may be repeated",
    },
    "--extra-file": {
        **_SEVERAL,
        "type": inputs.parse_file,
        "metavar": "SOURCE:DESTINATION",
        "help": "a further file of the ramdisk; may be repeated",
    },
    "--ca-file": {
        "type": inputs.read_authorities,
        "default": (),
        "metavar": "FILE",
        "help": "certificates (PEM) by which the agent verifies the API and servers of images",
    },
    "--ssh-key": {
        "type": inputs.read_ssh_keys,
        "metavar": "FILE",
        "help": "public keys of OpenSSH whose owners may log in as root; without any, no user may",
    },
    "--mirror": {
        **_SEVERAL,
        "type": inputs.parse_mirror,
        "metavar": "URL",
        "help": "where Debian packages come from, a URL or a line of sources.list; may be repeated (default: Debian's "
        "own servers, with security updates)",
    },
    "--append": {
        "type": inputs.parse_arguments,
        "default": "",
        "metavar": "ARGUMENTS",
        "help": "further kernel arguments of the ISO image",
    },
    "--no-iso": {"action": "store_true", "help": "make neither ESP nor ISO image"},
    "--cache": {
        "type": Path,
        "metavar": "DIRECTORY",
        "help": "where results are kept (default: $INGOT_CACHE, or ~/.cache/ingot)",
    },
    "--fresh": {"action": "store_true", "help": "build although there is a result: Debian may have newer packages"},
}


def _add_parsers(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build kernel, ramdisk, ESP and ISO image", description=_BUILD)
    for name, option in _OPTIONS.items():
        build.add_argument(name, **option)
    build.set_defaults(run=_build)
    verify = commands.add_parser(
        "verify",
        help="verify images",
        description="Compare the files of a directory with the manifest of ingot-image, or with the checksum files "
        "(NAME.sha256, NAME.sha512, SHA256SUMS) that others publish beside their images.",
    )
    verify.add_argument("directory", type=Path, metavar="DIRECTORY")
    verify.set_defaults(run=_verify)
    profiles = commands.add_parser("profiles", help="list the kinds of machines that ramdisks are built for")
    profiles.set_defaults(run=_list_profiles)


def _order(given: argparse.Namespace) -> Order:
    architecture: Architecture = ARCHITECTURES[given.arch]
    keys = [given.ssh_key] if given.ssh_key else []
    words = (_VIRTUAL_MEDIA, f"console=tty0 console={architecture.console},115200", given.append)
    return Order(
        profile=load_all()[given.profile],
        architecture=architecture,
        arguments=" ".join(word for word in words if word),
        packages=tuple(given.extra_package),
        files=(*given.ca_file, *keys, *given.extra_file),
        mirrors=tuple(given.mirror),
        media=not given.no_iso,
    )


def _build(given: argparse.Namespace) -> None:
    order, cache = _order(given), ((given.cache or _find_cache()) / _FOLDER).absolute()
    publishing.check_place(given.output)
    began = time.time()
    kept = cache / ramdisk.name_result(order)
    if given.fresh or not kept.exists():
        print(f"ingot-image: builds {kept.name}, which takes a minute or more", file=sys.stderr, flush=True)
    result = ramdisk.build(cache, order, [masking.mask_text(word) for word in given.words], given.fresh)
    publishing.publish(result, given.output)
    forget_unused(cache, "building-*", *(f"{name}-*" for name in load_all()))  # the first: of builds that were killed
    facts = manifest.read(given.output)
    built = datetime.datetime.fromisoformat(facts["built_at"])
    if built.timestamp() < began - 1:
        print(f"ingot-image: built at {facts['built_at']}; --fresh builds it again", file=sys.stderr)
    print(f"{facts['profile']} {facts['architecture']}: agent {facts['agent']}, kernel {facts['kernel']}")
    for name, file in facts["files"].items():
        print(f"{given.output / name}  {file['size'] / _MEBIBYTE:.1f} MiB  {file['sha256']}")


def _verify(given: argparse.Namespace) -> None:
    """:raises BuildError: a file is not what it should be."""
    directory: Path = given.directory
    if not directory.is_dir():
        raise BuildError(f"{directory} is no directory")
    if (directory / manifest.MANIFEST).exists():
        names = list(manifest.read(directory)["files"])
        faults = manifest.list_faults(directory)
    else:
        checks = checksums.verify(directory)
        names = [check.name for check in checks]
        faults = [f"{check.name}: {check.fault}" for check in checks if check.fault]
    if faults:
        raise BuildError(f"{directory} is not what was published:\n" + "\n".join(f"  {fault}" for fault in faults))
    print(f"{len(names)} files are what they should be: {', '.join(sorted(names))}")
    for kernel, initrd in checksums.list_pairs({*names}):
        print(f"[deploy] deploy_kernel = file://{directory.absolute() / kernel}")
        print(f"[deploy] deploy_ramdisk = file://{directory.absolute() / initrd}")


def _list_profiles(_: argparse.Namespace) -> None:
    for name, profile in sorted(load_all().items()):
        print(f"{name}: {profile.description}; {profile.memory_mib} MiB of memory")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: the exit status, as the module's first lines say.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="ingot-image", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=importlib.metadata.version("ingot"))
    _add_parsers(parser)
    given = parser.parse_args(words)
    given.words = ["ingot-image", *words]
    os.umask(0o022)  # web servers and conductors read the results, and the same inputs give the same modes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # or the scratch directory would stay behind
    try:
        given.run(given)
    except (BuildError, errors.IngotError, OSError) as error:
        print(f"ingot-image: {masking.mask_text(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ingot-image: interrupted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
