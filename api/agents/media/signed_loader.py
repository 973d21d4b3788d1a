"""The boot loader of the images that the API makes, where neither a node nor an option names another."""

from oslo_config import cfg

from ingot.common import errors
from ingot.common.media import loaders
from ingot.common.media.content import Content


def read_esp(conf: cfg.ConfigOpts, architecture: str) -> Content:
    """Return the file system with Debian's signed loader for an architecture.

    :raises ImageError: this host has no loader for it.
    """
    if architecture not in loaders.LOADERS:
        known = ", ".join(loaders.LOADERS)
        raise errors.ImageError(
            f"no boot loader is known for {architecture}, only for {known}: set [deploy] bootloader_by_arch"
        )
    try:
        return loaders.read_esp(conf.deploy.signed_loader_path, architecture)
    except OSError as exc:
        raise errors.ImageError(
            f"{exc.filename} of this host of the API: {exc.strerror}. Install Debian's shim-signed and GRUB "
            "(grub-efi-amd64-signed or -arm64-signed), see [deploy] signed_loader_path, or set [deploy] bootloader"
        ) from exc
