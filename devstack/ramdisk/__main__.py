"""The command: builds the deploy ramdisk and the test image, and fetches loaders, or finds what is there."""

import argparse
import signal
import sys
from pathlib import Path

from ingot.image import ramdisk as builder
from ingot.image.builds import BuildError, forget_unused
from ingot.image.order import ARCHITECTURES, Order
from ingot.image.profiles import load_all
from ramdisk import image, netboot


def _link(name: Path, result: Path) -> None:
    """Have the newest result under a name that stays, and say where it is."""
    fresh = name.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(result)
    fresh.replace(name)
    print(result, flush=True)


def main() -> int:
    """Build the ramdisk; return 1 with the reason on standard error when that fails."""
    parser = argparse.ArgumentParser(prog="python3 -m ramdisk", description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where deploy, image and netboot lead to the results")
    parser.add_argument("--cache", type=Path, help="where results are kept by the hashes of what they are made from "
                        "(default: the directory)")  # fmt: skip
    options = parser.parse_args()
    directory = options.directory.absolute()
    cache = (options.cache or directory).absolute()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # or the scratch directory would stay behind
    try:
        order = Order(load_all()["small"], ARCHITECTURES["amd64"], "", media=False)
        ramdisk = builder.build(cache, order, sys.orig_argv)
        _link(directory / "deploy", ramdisk)
        _link(directory / "image", image.build(cache, ramdisk))
        _link(directory / "netboot", netboot.build(cache))
        forget_unused(cache, "small-*", "image-*", "netboot-*")
    except (BuildError, OSError) as error:
        print(f"ramdisk: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
