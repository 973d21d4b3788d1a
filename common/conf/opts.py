"""All option groups, for oslo-config-generator, and how a command reads them: once, from files and command line."""

import contextlib
import importlib.metadata
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_db import options as db_options
from oslo_log import log
from oslo_utils import netutils

from ingot.common import errors, later
from ingot.common.conf import (
    ansible,
    api,
    audit,
    boot_services,
    conductor,
    console,
    cors,
    default,
    deploy,
    healthcheck,
    inspector,
    iscsi,
    metrics,
    notifications,
    oci,
    redfish,
    secrets,
    switch,
    tracing,
)
from ingot.common.conf import files as config_files
from ingot.common.networks import ASK_NEUTRON

if TYPE_CHECKING:
    from keystoneauth1 import loading
else:
    loading = later.Module("keystoneauth1.loading")

_EPILOG = (
    "Options are read from the files that --config-file and --config-dir name; without them from ingot.conf, the file "
    "of the command's own name, and their .conf.d directories in ~/.ingot, ~, /etc/ingot and /etc. Environment "
    "variables, OS_<GROUP>__<OPTION>, are stronger. ingot-status config says what is wrong with files."
)

_SQLITE = "sqlite:///$state_path/ingot.sqlite"

_STAND_INS: Mapping[tuple[str, str], object] = {("database", "connection"): _SQLITE, ("inspector", "hooks"): []}
"""Instead of defaults that are set later, or that name another option."""

GROUPS: dict[str, list[cfg.Opt]] = {
    "DEFAULT": [*default.DEFAULT, *notifications.NOTIFICATIONS],
    "api": api.API,
    "oslo_middleware": api.OSLO_MIDDLEWARE,
    "service_catalog": api.SERVICE_CATALOG,
    "conductor": conductor.CONDUCTOR,
    "console": console.CONSOLE,
    "cors": cors.CORS,
    "deploy": deploy.DEPLOY,
    "agent": deploy.AGENT,
    "inspector": inspector.INSPECTOR,
    "pxe": deploy.PXE,
    "audit": audit.AUDIT,
    "boot_services": boot_services.BOOT_SERVICES,
    "auto_discovery": boot_services.AUTO_DISCOVERY,
    "dhcp": boot_services.DHCP,
    "dnsmasq": boot_services.DNSMASQ,
    "ipmi": deploy.IPMI,
    "oci": oci.OCI,
    "redfish": redfish.REDFISH,
    "iscsi": iscsi.ISCSI,
    "metrics": metrics.METRICS,
    "ansible": ansible.ANSIBLE,
    "secrets": secrets.SECRETS,
    "healthcheck": healthcheck.HEALTHCHECK,
    "sensor_data": notifications.SENSOR_DATA,
    "switch": switch.SWITCH,
    "tracing": tracing.TRACING,
}
"""All but those of services, which are registered if they are used: :func:`use_service`."""

_NEUTRON_USERS = (
    ("DEFAULT", "enabled_network_interfaces", ASK_NEUTRON),
    ("dhcp", "dhcp_provider", frozenset(("neutron",))),
)
"""Group and name of options, with the values of them that need [neutron]."""


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return (group, options) of Ingot's own groups, for the sample: entry point oslo.config.opts.

    To those of services it adds the options of auth_type = password; the plugin registers its own when it is
    loaded.
    """
    login = loading.get_auth_plugin_conf_options("password")
    services = {name: [*GROUPS.get(name, ()), *options(), *login] for name, options in config_files.SERVICES.items()}
    return sorted({**GROUPS, **services}.items())


def register(conf: cfg.ConfigOpts) -> None:
    """Register all of Ingot's groups with an options object; nothing is read."""
    for group, options in GROUPS.items():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    # Connections are used for milliseconds; a pool smaller than the threads would open and close them all the time.
    db_options.set_defaults(conf, max_pool_size=30, max_overflow=100)
    log.register_options(conf)


def use_service(conf: cfg.ConfigOpts, name: str) -> None:
    """Register the options of [cinder], [glance], [inspector], [neutron] or [nova] for the service that is asked."""
    conf.register_opts(config_files.SERVICES[name](), name)


def _is_set(conf: cfg.ConfigOpts, group: str) -> bool:
    return group in conf.list_all_sections() or any(name.startswith(f"OS_{group.upper()}__") for name in os.environ)


def _enables(conf: cfg.ConfigOpts, group: str, name: str, values: Collection[str]) -> bool:
    """Return whether an option, of one value or a list of them, has one of these."""
    try:
        given = (conf if group == "DEFAULT" else conf[group])[name]
    except (ValueError, cfg.NoSuchOptError):  # what is wrong with it, others say
        return False
    return not set(values).isdisjoint(given if isinstance(given, list) else [given])


def uses_neutron(conf: cfg.ConfigOpts) -> bool:
    """Return whether something is enabled that asks Neutron."""
    return any(_enables(conf, *user) for user in _NEUTRON_USERS)


def uses_cinder(conf: cfg.ConfigOpts) -> bool:
    """Return whether something is enabled that asks Cinder."""
    return _enables(conf, "DEFAULT", "enabled_storage_interfaces", ("cinder",))


def load(
    arguments: Sequence[str],
    prog: str,
    files: Sequence[str] | None = None,
    cli_opts: Sequence[cfg.Opt] = (),
    into: cfg.ConfigOpts | None = None,
) -> cfg.ConfigOpts:
    """Read options, as :func:`parse` does, and refuse what cannot be used.

    :raises ConfigurationError: files cannot be read, values cannot be used, or options contradict each other.
    """
    conf = parse(arguments, prog, files, cli_opts, into)
    if bad := replace_bad_values(conf):
        raise errors.ConfigurationErrors(bad)
    check(conf)
    return conf


def parse(
    arguments: Sequence[str],
    prog: str,
    files: Sequence[str] | None = None,
    cli_opts: Sequence[cfg.Opt] = (),
    into: cfg.ConfigOpts | None = None,
    description: str | None = None,
) -> cfg.ConfigOpts:
    """Read what a command was started with.

    :param arguments: the command line without the program's name, with --config-file and --config-dir if need be.
    :param prog: name of the command; ``ingot.conf`` in the usual places (~/.ingot, /etc/ingot) is its default file.
    :param files: configuration files to read instead of the default ones.
    :param cli_opts: further options of this command's command line.
    :param into: the options object to fill; a new one by default. Processes on RabbitMQ give ``cfg.CONF``: parts of
        oslo.messaging register their options nowhere else, whatever object they are given.
    :param description: of the command, for its --help.
    :raises ConfigurationError: a file cannot be read.
    """
    conf = cfg.ConfigOpts() if into is None else into
    register(conf)
    conf.register_cli_opts(list(cli_opts))
    version = importlib.metadata.version("ingot")
    try:
        conf(
            list(arguments),
            project="ingot",
            prog=prog,
            version=version,
            default_config_files=None if files is None else list(files),
            description=description,
            epilog=_EPILOG,
        )
    except (cfg.Error, OSError, ValueError) as exc:
        raise errors.ConfigurationError(f"{exc}.") from exc
    for service in (config_files.GLANCE, config_files.NOVA):
        if _is_set(conf, service):
            use_service(conf, service)
    if _is_set(conf, config_files.NEUTRON) or uses_neutron(conf):
        use_service(conf, config_files.NEUTRON)
    if _is_set(conf, config_files.CINDER) or uses_cinder(conf):
        use_service(conf, config_files.CINDER)
    if _enables(conf, "DEFAULT", "enabled_inspect_interfaces", ("inspector",)):
        use_service(conf, config_files.INSPECTOR)
    conf.set_default("my_ip", netutils.get_my_ipv4())
    conf.set_default("connection", _SQLITE, group="database")
    return conf


def replace_bad_values(conf: cfg.ConfigOpts) -> list[str]:
    """Put defaults in place of values that cannot be used, and return why they cannot.

    Only Ingot's own options are looked at, and those of the database.
    """
    bad = []
    groups = [*GROUPS.items(), ("database", db_options.database_opts)]
    services = config_files.SERVICES.items()
    groups += [(name, options()) for name, options in services if name in conf and "auth_type" in conf[name]]
    for group, options in groups:
        for opt in options:
            try:
                (conf if group == "DEFAULT" else conf[group])[opt.dest]
            except (ValueError, cfg.NoSuchOptError) as exc:
                before, _, why = str(exc).rpartition(" is not valid: ")
                place = ", as it is set in the environment" if "Locations.environment" in before else ""
                if isinstance(exc, cfg.NoSuchOptError):
                    why = config_files.NO_SUCH_NAME
                elif opt.secret:
                    why = "its value cannot be used."
                bad.append(f"[{group}] {opt.name}{place}: {why.rstrip('.')}.")
                use_default(conf, group, opt)
    return bad


def use_default(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> None:
    """Put the default in place of a value that cannot be used, so that all else can be looked at."""
    value = _STAND_INS.get((group, opt.dest), opt.default)
    with contextlib.suppress(cfg.NoSuchOptError, cfg.NoSuchGroupError):
        conf.set_override(opt.dest, value, None if group == "DEFAULT" else group)


def check(conf: cfg.ConfigOpts) -> None:
    """Refuse options that contradict each other.

    :raises ConfigurationError: they do.
    """
    if conf.conductor.heartbeat_timeout < 3 * conf.conductor.heartbeat_interval:
        raise errors.ConfigurationError(
            option="[conductor] heartbeat_timeout",
            value=conf.conductor.heartbeat_timeout,
            allowed=f"It must be at least three times heartbeat_interval ({conf.conductor.heartbeat_interval} s).",
        )


def agent_api_url(conf: cfg.ConfigOpts) -> str:
    """Return the address of the API for machines on the provisioning network, without a slash at the end."""
    url = conf.service_catalog.endpoint_override or conf.api.public_endpoint
    scheme = "https" if conf.api.enable_ssl_api else "http"
    return (url or f"{scheme}://{netutils.escape_ipv6(conf.my_ip)}:{conf.api.port}").rstrip("/")
