"""Which RPC version and features each release has: what ``[DEFAULT] pin_release_version`` is looked up in.

Only the last three releases stand here; a rolling upgrade goes from one release to the next.
"""

import importlib.metadata
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors


class Release(NamedTuple):
    """What a conductor of a release understands.

    :param rpc: its RPC version.
    :param deploy_steps: whether deploy steps and templates may be used while pinned to it (specifications 001, 003).
    """

    rpc: str
    deploy_steps: bool = True


RELEASES: dict[str, Release] = {
    # What conductors did before there were steps. Nobody published it: it is for operators who must keep to that until
    # all of their deploy interfaces and ramdisks can do more.
    "0.0": Release(rpc="1.0", deploy_steps=False),
    "0.1": Release(rpc="1.0"),
    "0.2": Release(rpc="1.1"),
}


def current() -> str:
    """Version of the installed distribution, e.g. ``0.1.0``."""
    return importlib.metadata.version("ingot")


def pinned(conf: cfg.ConfigOpts) -> Release | None:
    """The release that the operator pinned, or None.

    :raises ConfigurationError: this release does not know the pinned one.
    """
    name = conf.pin_release_version
    if name is None:
        return None
    if name not in RELEASES:
        raise errors.ConfigurationError(
            option="pin_release_version", value=name, allowed=f"Known releases: {', '.join(sorted(RELEASES))}."
        )
    return RELEASES[name]


def uses_deploy_steps(conf: cfg.ConfigOpts) -> bool:
    """Whether deploy steps of users and agents, and templates, are used; not while pinned to a release before them."""
    release = pinned(conf)
    return release is None or release.deploy_steps
