"""What Ironic's files say under names that Ingot has, and that nevertheless works in another way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from oslo_config import cfg

from ingot.common import boot_loaders
from ingot.common.conf import ironic, opts
from ingot.common.conf.files import Finding, Setting
from ingot.common.conf.ironic import Verdict

_LOGIN = ("auth_url", "auth_type", "auth_section")
"""Options that say as whom a service is asked."""

_PORTS = {"http": 80, "https": 443}

_BUNDLE = "ipa-cacert-bundle"
"""What the template of Metal3's image fetches from beside Ironic's script."""

_Given = Mapping[tuple[str, str], Setting]


def find(conf: cfg.ConfigOpts, settings: Sequence[Setting]) -> Iterator[Finding]:
    """Yield what works in another way than with Ironic, where that is known to matter.

    :param settings: of the files, which decide; of the environment are only values.
    """
    given = {(setting.group, setting.name.replace("-", "_")): setting for setting in settings}
    for check in _CHECKS:
        yield from check(conf, given)


def _find(where: str, option: tuple[str, str], advice: str) -> Finding:
    group, name = option
    return Finding(Verdict.DIFFERENT, where, group, (name,), advice)


def _check_external_url(conf: cfg.ConfigOpts, given: _Given) -> Iterator[Finding]:
    """Look whether it has a port that is none of the API's, where there is a web server, too."""
    option, url = ("deploy", "external_http_url"), conf.deploy.external_http_url
    if option not in given or not (url and conf.deploy.http_url):
        return
    known = (opts.agent_api_url(conf), conf.deploy.external_callback_url, conf.api.public_endpoint)
    if _read_port(url) not in {conf.api.port, *(_read_port(one) for one in known if one)}:
        advice = "It names the API as BMCs reach it, which fetch boot media there, and no web server. So does "
        advice += "driver_info.external_http_url of nodes."
        yield _find(given[option].where, option, advice)


def _read_port(url: str) -> int | None:
    """Return the port of an address; None if it has none, or one that there cannot be."""
    try:
        parts = urlsplit(url)
        return parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None


def _check_first_script(conf: cfg.ConfigOpts, given: _Given) -> Iterator[Finding]:
    """Look whether boot.ipxe leads to the API, where a TFTP server of Ironic's shows that DHCP may name that file."""
    option, root = ("deploy", "http_root"), conf.deploy.http_root
    is_theirs = any(group == "pxe" and ironic.find(group, name) for group, name in given)
    if option not in given or not (root and is_theirs) or "ipxe" not in conf.enabled_boot_interfaces:
        return
    place, script = Path(root, boot_loaders.SCRIPT), f"/{boot_loaders.SCRIPT}"
    if not conf.boot_services.interfaces and script not in _read(place):
        address = f"{opts.agent_api_url(conf)}{script}"
        advice = f"Ingot writes no {place}. If your DHCP server has machines fetch that, put a file there with two "
        advice += f"lines, #!ipxe and chain {address}; or have it name {address}."
        yield _find(given[option].where, option, advice)


def _check_template(conf: cfg.ConfigOpts, given: _Given) -> Iterator[Finding]:
    option = ("pxe", "ipxe_config_template")
    if option in given and conf.pxe.ipxe_config_template and _BUNDLE in _read(Path(conf.pxe.ipxe_config_template)):
        advice = f"This template fetches {_BUNDLE} beside the script, which the API does not have, so machines do not "
        advice += "boot. Unset it: Ingot's own script gives agents the authorities of [agent] api_ca_file."
        yield _find(given[option].where, option, advice)


def _read(place: Path) -> str:
    try:
        return place.read_text(errors="replace")
    except OSError:
        return ""


def _check_state_path(conf: cfg.ConfigOpts, given: _Given) -> Iterator[Finding]:
    """Look whether the key of secrets has a directory that was chosen, or that a package or an image has made."""
    option = ("DEFAULT", "state_path")
    theirs = [setting for key, setting in given.items() if ironic.find(*key)]
    place = conf.get_location("state_path")
    is_chosen = (place is not None and place.location.is_user_controlled) or conf.secrets.key_file
    if theirs and not is_chosen and not Path(conf.state_path).exists():
        advice = f"Without it, {conf.state_path} gets the key with which secrets are encrypted. Name a directory that "
        advice += "is kept, also when a container is replaced."
        yield _find(theirs[0].file, option, advice)


def _check_neutron(conf: cfg.ConfigOpts, given: _Given) -> Iterator[Finding]:
    """Look whether a Neutron is configured that nothing asks: in Ironic the interface flat is enabled by default."""
    names = tuple(name for group, name in given if group == "neutron" and name in _LOGIN)
    if names and not opts.uses_neutron(conf):
        advice = "Nothing that is enabled asks Neutron: networks of users would be accepted and never connected. Write "
        advice += "[DEFAULT] enabled_network_interfaces = flat,noop, which is Ironic's default, or those that your "
        advice += "nodes have. Remove the group when your network is connected by other means."
        yield Finding(Verdict.REFUSED, given["neutron", names[0]].where, "neutron", names, advice)


def _check_cinder(conf: cfg.ConfigOpts, given: _Given) -> Iterator[Finding]:
    """Look whether a Cinder is configured that nothing asks: Ironic's sample has the interface disabled, too."""
    names = tuple(name for group, name in given if group == "cinder" and name in _LOGIN)
    if names and not opts.uses_cinder(conf):
        advice = "Nothing that is enabled asks Cinder: nodes would not get its volumes. Add cinder to [DEFAULT] "
        advice += "enabled_storage_interfaces, or remove the group."
        yield Finding(Verdict.DIFFERENT, given["cinder", names[0]].where, "cinder", names, advice)


_CHECKS: Sequence[Callable[[cfg.ConfigOpts, _Given], Iterator[Finding]]] = (
    _check_external_url,
    _check_first_script,
    _check_template,
    _check_state_path,
    _check_neutron,
    _check_cinder,
)
