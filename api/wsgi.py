"""The application for a WSGI server: ``ingot.api.wsgi:application``.

Configuration files are named in the environment variable INGOT_CONFIG_FILES, separated by colons; without it they are
searched in the usual places, as ingot-api does.
"""

import os

from oslo_config import cfg

from ingot.api import cmd
from ingot.common.conf import opts

_named = [name for name in os.environ.get("INGOT_CONFIG_FILES", "").split(os.pathsep) if name]
_conf = opts.load([], prog="ingot-api", files=_named or None, into=cfg.CONF)
opts.set_up_logging(_conf)

application = cmd.build(_conf)
