"""Options of the [example] group."""

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt("timeout", default=10, min=1, help="Seconds that a plug has to answer."),
    cfg.IntOpt(
        "show_name_priority",
        default=150,
        min=0,
        help="Priority of the deploy step that shows the machine's name on its plug. Above 100: before the machine "
        "boots. 0: never.",
    ),
    cfg.IntOpt("watch_interval", default=60, min=0, help="Seconds between two readings of the plugs' load. 0: never."),
    cfg.FloatOpt("most_watts", default=2000.0, min=0.0, help="Load of a plug above which a warning is logged."),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options known. Safe to repeat: each of the driver's interfaces may need them."""
    conf.register_opts(OPTIONS, group="example")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for oslo-config-generator: ``namespace = ingot_example`` adds them to a sample file."""
    return [("example", OPTIONS)]
