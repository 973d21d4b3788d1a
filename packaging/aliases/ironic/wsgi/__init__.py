"""The application under the name that web servers know from Ironic: ``ironic.wsgi:application``.

Its configuration files are those of INGOT_CONFIG_FILES, or the ones where Ironic looks for its own.
"""

import os

from oslo_config import cfg

os.environ.setdefault("INGOT_CONFIG_FILES", os.pathsep.join(cfg.find_config_files("ironic", "ironic-api")))

from ingot.api.wsgi import application as application
