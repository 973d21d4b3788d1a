"""Options of the [metrics] group: where Prometheus finds metrics, and how long a node may be in a state."""

from collections.abc import Mapping

from oslo_config import cfg, types

from ingot.common import states

_HOUR, _DAY = 3600, 86400

_LIMITS: Mapping[str, int] = {
    states.VERIFYING: 900,
    states.INSPECTING: 900,
    states.INSPECTWAIT: _HOUR,
    states.ADOPTING: 900,
    states.DEPLOYING: _HOUR,
    states.DEPLOYWAIT: _HOUR,
    states.DEPLOYHOLD: _DAY,
    states.CLEANING: _HOUR,
    states.CLEANWAIT: _DAY,
    states.CLEANHOLD: _DAY,
    states.DELETING: _HOUR,
    states.RESCUING: 900,
    states.RESCUEWAIT: _HOUR,
    states.UNRESCUING: 900,
    states.SERVICING: _HOUR,
    states.SERVICEWAIT: _DAY,
    states.SERVICEHOLD: _DAY,
}


class StateLimits(types.ConfigType):
    """The type of an option that gives provision states a number of seconds; states that are not named keep theirs."""

    def __init__(self) -> None:
        super().__init__(type_name="seconds by state")

    def __call__(self, value: object) -> dict[str, int]:
        """Return the seconds of each state that has a limit.

        :raises ValueError: there is no such state, or that is no number of seconds.
        """
        limits = dict(_LIMITS)
        for item in filter(None, map(str.strip, str(value).split(","))):
            state, _, seconds = (part.strip() for part in item.rpartition(":"))
            if state not in states.ALL:
                raise ValueError(f"{item!r} begins with no provision state; there are {', '.join(sorted(states.ALL))}")
            if not seconds.isdecimal():
                raise ValueError(f"{item!r} does not end with a number of seconds; 0 is no limit")
            limits[state] = int(seconds)
        return {state: seconds for state, seconds in limits.items() if seconds}

    def _formatter(self, value: object) -> str:
        return str(value)

    def __eq__(self, other: object) -> bool:
        return self.__class__ is other.__class__

    __hash__ = None  # type: ignore[assignment]


def _describe(limits: Mapping[str, int]) -> str:
    return ", ".join(f"{state}:{seconds}" for state, seconds in limits.items())


_TLS = "Unset: metrics are served without TLS. The file is read again for each connection."

METRICS: list[cfg.Opt] = [
    cfg.HostAddressOpt(
        "host_ip",
        default="127.0.0.1",
        help="Address at which metrics and health are served, to anyone who reaches it, unless ca_file is set. Where "
        "Prometheus runs on another host, use the address of a network of operators.",
    ),
    cfg.PortOpt(
        "api_port",
        default=0,
        help="Port at which ingot-api and ingot serve GET /metrics and GET /healthcheck, as 9638. With several [api] "
        "api_workers, each has a port of its own, counted up from here. 0: neither is served.",
    ),
    cfg.PortOpt(
        "conductor_port",
        default=0,
        help="The same for ingot-conductor, as 9648; with several [conductor] workers, each has a port of its own. The "
        "command ingot serves what belongs to its conductor at api_port.",
    ),
    cfg.StrOpt("cert_file", help=f"Certificate for these ports, in PEM, with key_file. {_TLS}"),
    cfg.StrOpt("key_file", help="Private key of the certificate, in PEM, without a password."),
    cfg.StrOpt(
        "ca_file",
        help="Authorities in PEM: Prometheus must then show a certificate of one of them. Needs cert_file.",
    ),
    cfg.Opt(
        "state_time_limits",
        type=StateLimits(),
        default=_describe(_LIMITS),
        help="Seconds after which a node counts as overdue in a provision state, as state:seconds, separated by "
        "commas. States that are not named keep their default; 0 is no limit. Nothing is done to such a node: it shows "
        "in the metric ingot_nodes_overdue and in GET /ingot/v1/overdue.",
    ),
    cfg.IntOpt(
        "node_count_interval",
        default=30,
        min=1,
        help="Seconds for which a count of nodes is served again. It takes one statement in each API process, whatever "
        "the number of nodes, and only while Prometheus asks.",
    ),
]
