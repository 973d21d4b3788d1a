"""Options of [iscsi]: how deploy interface ``iscsi`` writes to disks that agents export."""

from oslo_config import cfg

ISCSI: list[cfg.Opt] = [
    cfg.PortOpt("portal_port", default=3260, help="The port at which agents export their disks."),
    cfg.StrOpt(
        "conv_flags",
        choices=["", "sparse"],
        default="",
        help="sparse: zeros of an image are not written, so that the disk keeps there what it had. Use it only for "
        "disks that were erased. Empty: the whole image is written.",
    ),
    cfg.IntOpt(
        "verify_attempts",
        default=3,
        min=1,
        help="How often a connection to an exported disk is tried before a deployment fails, a second apart.",
    ),
    cfg.IntOpt(
        "write_timeout",
        default=3600,
        min=1,
        help="Seconds in which an image is fetched, checked and written to a disk. What takes longer is killed, and "
        "the deployment fails.",
    ),
    cfg.IntOpt(
        "memory_limit",
        default=2048,
        min=256,
        help="MiB of address space for each process that writes an image: an image that makes it ask for more fails.",
    ),
    cfg.StrOpt(
        "images_path",
        default="$state_path/images",
        help="Directory on a conductor's host for images while they are written. Each conductor has a directory of its "
        "own in it, of which it removes everything before its first image.",
    ),
]
