"""Options objects for libraries that register options of their own, with their own help (used by the API).

They would not take Ingot's of the same names: each library gets an object to itself, with Ingot's values in it.
"""

from collections.abc import Iterable

from oslo_config import cfg


def lend(conf: cfg.ConfigOpts, group: str, options: Iterable[cfg.Opt], expected: Iterable[cfg.Opt]) -> cfg.ConfigOpts:
    """Return an options object for a library.

    :param options: Ingot's of the group, whose values it gets.
    :param expected: those of the library.
    """
    lent = cfg.ConfigOpts()
    lent([], project="ingot", default_config_files=[], default_config_dirs=[])
    lent.register_opts(list(expected), group=group)
    known = set(lent[group])
    for opt in options:
        if opt.dest in known:
            lent.set_override(opt.dest, conf[group][opt.dest], group=group)
    return lent
