"""Scripts that boot a kernel as options say: with settings of the agent, or by an operator's template."""

import functools
from pathlib import Path

import jinja2
import jinja2.sandbox
from oslo_config import cfg
from oslo_log import log

from ingot.api.agents import boot_scripts
from ingot.common import errors
from ingot.common.conf import opts
from ingot.common.json_types import BootConfig

LOG = log.getLogger(__name__)

SETTINGS = "settings.cpio"
"""The name of the ramdisk with settings of the agent, below /boot."""

_LONGEST_SCRIPT = 64 * 1024

_ENVIRONMENT = jinja2.sandbox.ImmutableSandboxedEnvironment(autoescape=False, keep_trailing_newline=True)
"""What templates are rendered by: they get texts, and can reach nothing of this process by them."""


def render(conf: cfg.ConfigOpts, loader: str, config: BootConfig, mac: str) -> str:
    """Return what boots a kernel.

    :param loader: one of :data:`ingot.api.agents.boot_scripts.LOADERS`.
    :param mac: of the card that boots.
    :raises ServiceUnavailable: the operator's template cannot be rendered.
    """
    more = [f"{opts.agent_api_url(conf)}/boot/{SETTINGS}"] if has_settings(conf, config) else []
    place = conf.pxe.ipxe_config_template
    if loader == "ipxe" and place:
        return _render_template(conf, Path(place), config, more)
    return boot_scripts.LOADERS[loader].render(config, mac.replace(":", "-").lower(), more)


def has_settings(conf: cfg.ConfigOpts, config: BootConfig) -> bool:
    """Return whether a kernel gets the ramdisk with settings of the agent: a user's own does not."""
    return bool(conf.agent.api_ca_file) and config.get("target") == "ramdisk"


def render_unknown(conf: cfg.ConfigOpts, loader: str) -> str:
    """Return what a machine does that is no node's: what the operator has for it, or it boots from its disk."""
    disk = boot_scripts.LOADERS[loader].disk
    if loader != "ipxe" or not conf.pxe.ipxe_fallback_script:
        return disk
    return f"#!ipxe\nchain --replace {locate_fallback(conf)} ||\n{disk.partition(chr(10))[2]}"


def locate_fallback(conf: cfg.ConfigOpts) -> str:
    """Return the address of [pxe] ipxe_fallback_script, which may be a file in [deploy] http_root.

    :raises ConfigurationError: it is none.
    """
    given: str = conf.pxe.ipxe_fallback_script
    if given.startswith(("http://", "https://")) and given.isprintable() and " " not in given:
        return given
    if conf.deploy.http_url and given.isprintable() and " " not in given:
        return f"{conf.deploy.http_url.rstrip('/')}/{given.lstrip('/')}"
    allowed = "A URL of a script of iPXE, or the name of a file in [deploy] http_root, with [deploy] http_url."
    raise errors.ConfigurationError(option="[pxe] ipxe_fallback_script", value=given, allowed=allowed)


def check(conf: cfg.ConfigOpts) -> None:
    """Refuse options that no script can be made with.

    :raises ConfigurationError: the template cannot be read, or the fallback script is nowhere.
    """
    if conf.pxe.ipxe_fallback_script:
        locate_fallback(conf)
    if not conf.pxe.ipxe_config_template:
        return
    trial: BootConfig = {"target": "ramdisk", "kernel": "http://a/k", "initrd": "http://a/i", "kernel_args": "quiet"}
    try:
        _render_template(conf, Path(conf.pxe.ipxe_config_template), trial, [])
    except errors.ServiceUnavailable as exc:
        raise errors.ConfigurationError(
            option="[pxe] ipxe_config_template",
            value=conf.pxe.ipxe_config_template,
            allowed=f"A template of Jinja. {exc.message}",
        ) from exc


def _render_template(conf: cfg.ConfigOpts, place: Path, config: BootConfig, more: list[str]) -> str:
    """Render the operator's template with the names that those of Ironic use."""
    kernel, initrd = (("".join(str(config.get(name) or "").split())) for name in ("kernel", "initrd"))
    known = {
        "deployment_aki_path": kernel,
        "deployment_ari_path": initrd,
        "aki_path": kernel,
        "ari_path": initrd,
        "pxe_append_params": " ".join((config.get("kernel_args") or "").split()),
        "initrd_filename": boot_scripts.name_file(initrd),
        "ipa_api_url": opts.agent_api_url(conf),
        "ipxe_timeout": 0,
        "extra_initrds": more,
    }
    try:
        text = _read_template(place, place.stat().st_mtime_ns).render(pxe_options=known)
    except Exception as exc:  # it is the operator's code, which can raise anything
        reason = f"{type(exc).__name__}: {exc}"
        raise errors.ServiceUnavailable(what=f"The template {place}", reason=reason) from exc
    if not text.startswith("#!ipxe") or len(text) > _LONGEST_SCRIPT:
        reason = f"it makes no script of iPXE: that begins with #!ipxe and has {_LONGEST_SCRIPT} characters at most"
        raise errors.ServiceUnavailable(what=f"The template {place}", reason=reason)
    return text


@functools.lru_cache(maxsize=4)
def _read_template(place: Path, _changed: int) -> jinja2.Template:
    """
    :param _changed: when it was, so that a new file is read again.
    """
    return _ENVIRONMENT.from_string(place.read_text())
