"""Options of the [secrets] group: how secrets are kept in the database."""

from oslo_config import cfg

SECRETS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "encrypt",
        default=True,
        help="Whether passwords and other secrets of driver_info, and of volume targets, are encrypted in the "
        "database. With false the database, and each backup of it, shows the passwords of all BMCs. After a "
        "change run ingot-dbsync online_data_migrations.",
    ),
    cfg.StrOpt(
        "key_file",
        sample_default="$state_path/secrets.key",
        help="File with the keys that secrets are encrypted with, one a line, readable for this service only (mode "
        "0600). The first encrypts, all decrypt. The command ingot makes it at its first start; ingot-dbsync add_key "
        "makes it for services of their own. All hosts need the same. Keep a copy apart from backups of the database: "
        "without it the secrets are lost. It is read again when it changes.",
    ),
]
