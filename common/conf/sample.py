"""Writes the sample of the configuration file: python -m ingot.common.conf.sample FILE.

What oslo-config-generator makes, without what has no effect in Ingot and lines that explain nothing.
"""

import io
import pathlib
import re
import sys

from oslo_config import cfg, generator

_NAMESPACES = (
    *("ingot", "keystonemiddleware.audit", "keystonemiddleware.auth_token"),
    *("oslo.db", "oslo.log", "oslo.messaging", "oslo.policy"),
)

_WITHOUT_EFFECT = ("oslo_messaging_amqp", "oslo_messaging_kafka")

_GROUP = re.compile(r"^(?=\[\w+\]$)", re.MULTILINE)


def render() -> str:
    """Return the sample."""
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf([f"--namespace={name}" for name in _NAMESPACES] + ["--wrap-width=100"], default_config_files=[])
    output = io.StringIO()
    generator.generate(conf, output)
    left_out = tuple(f"[{group}]" for group in _WITHOUT_EFFECT)
    groups = (part for part in _GROUP.split(output.getvalue()) if not part.startswith(left_out))
    return "".join(groups).replace(" - <No description provided>", "").rstrip() + "\n"


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(render())
