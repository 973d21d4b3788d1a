"""Options of the [conductor] group: membership, workers, time limits, what is done automatically."""

from oslo_config import cfg, types


def _timeout(name: str, what: str) -> cfg.Opt:
    return cfg.IntOpt(
        name,
        default=1800,
        min=0,
        help=f"Seconds without a heartbeat of the agent after which {what} fails. 0: wait for ever.",
    )


CONDUCTOR: list[cfg.Opt] = [
    cfg.StrOpt(
        "conductor_group",
        default="",
        help="Group of this conductor: it serves only the nodes whose conductor_group is the same. Not case sensitive.",
    ),
    cfg.IntOpt(
        "workers",
        default=1,
        min=1,
        max=64,
        help="Conductors that ingot-conductor runs on this host, each a process with workers_pool_size threads; their "
        "names are [DEFAULT] host, and the same with -2, -3 ... at its end. For hosts on which one is busy for the "
        "whole of a core. The all-in-one is always one process.",
    ),
    cfg.IntOpt("heartbeat_interval", default=5, min=1, help="Seconds between two heartbeats of a conductor."),
    cfg.IntOpt(
        "heartbeat_timeout",
        default=30,
        min=2,
        help="Seconds after its last heartbeat for which a conductor counts as online. After that the others take over "
        "its nodes and its work. At least three heartbeat intervals.",
    ),
    cfg.IntOpt(
        "sweep_interval",
        default=5,
        min=1,
        help="Seconds between two searches for nodes whose next check is due: lost wake-ups, expired waits, dead "
        "conductors.",
    ),
    cfg.IntOpt(
        "workers_pool_size",
        default=100,
        min=3,
        help="Threads that work on nodes. Waiting for machines uses none, so this is about simultaneous calls to BMCs "
        "and agents.",
    ),
    cfg.IntOpt(
        "periodic_max_workers",
        default=8,
        min=1,
        help="Threads for the periodic tasks of interfaces, apart from the workers.",
    ),
    cfg.BoolOpt("automated_clean", default=True, help="Clean nodes before they become available."),
    _timeout("deploy_callback_timeout", "a deployment"),
    _timeout("clean_callback_timeout", "a cleaning"),
    _timeout("service_callback_timeout", "a service"),
    _timeout("inspect_wait_timeout", "an inspection"),
    _timeout("rescue_callback_timeout", "a rescue"),
    cfg.IntOpt(
        "step_timeout",
        default=86400,
        min=0,
        help="Seconds after which an attempt of a step fails that has not ended, even if its agent or its hardware "
        "still answers. Must be longer than the longest erasing of disks. 0: no limit.",
    ),
    cfg.IntOpt(
        "power_state_change_timeout",
        default=60,
        min=2,
        help="Seconds that a machine may take to reach a power state. A soft power off that takes longer becomes a "
        "hard one during a flow.",
    ),
    cfg.IntOpt(
        "sync_power_state_interval",
        default=60,
        min=0,
        help="Seconds between two readings of all power states. 0: never.",
    ),
    cfg.IntOpt(
        "sync_power_state_workers",
        default=8,
        min=1,
        help="Threads that record power states and, of hardware that takes a thread for each reading, read them; apart "
        "from the workers. All BMCs that speak IPMI are read by one thread.",
    ),
    cfg.IntOpt(
        "silent_bmc_longest_pause",
        default=300,
        min=0,
        help="A BMC that does not answer is left alone by the reading of power states for sync_power_state_interval, "
        "then for twice as long, and so on, but never for more seconds than this. What users and flows request is "
        "always tried, and an answer ends the pause. 0: it is asked in each round.",
    ),
    cfg.IntOpt(
        "power_state_sync_max_retries",
        default=3,
        min=0,
        help="Failed readings of the power state in a row after which a node is put into maintenance with the fault "
        "'power failure'. It leaves maintenance automatically when the BMC answers again.",
    ),
    cfg.BoolOpt(
        "force_power_state_during_sync",
        default=True,
        help="Restore the power state that Ingot last set when a machine is found in another one; otherwise the found "
        "state is recorded.",
    ),
    cfg.IntOpt(
        "node_history_max_entries", default=300, min=0, help="History entries and step runs kept for each node."
    ),
    cfg.IntOpt(
        "node_history_minimum_days",
        default=0,
        min=0,
        help="Days for which all history entries and step runs are kept, even beyond node_history_max_entries.",
    ),
    cfg.IntOpt(
        "node_history_maximum_days",
        default=0,
        min=0,
        help="Days after which history entries and step runs are deleted, even of nodes that have few. 0: never.",
    ),
    cfg.IntOpt(
        "events_max_entries",
        default=100_000,
        min=1000,
        help="Events kept for clients of /ingot/v1/events that come back after a while.",
    ),
    cfg.Opt(
        "clean_step_priority_override",
        type=types.Dict(types.Integer(min=0)),
        default={},
        help="Priorities of automated clean steps, as interface.step:priority pairs separated by commas; 0 disables a "
        "step. Stronger than the priority in the code. Two steps of one interface with one priority stop the conductor "
        "from starting.",
    ),
    cfg.Opt(
        "deploy_step_priority_override",
        type=types.Dict(types.Integer(min=0)),
        default={},
        help="Priorities of deploy steps, as interface.step:priority pairs separated by commas. A core step can only "
        "be given 0; any other priority stops the conductor from starting.",
    ),
    cfg.Opt(
        "verify_step_priority_override",
        type=types.Dict(types.Integer(min=0)),
        default={},
        help="Priorities of the steps by which a node is verified before it is manageable, as interface.step:priority "
        "pairs separated by commas; 0 disables a step. management.clear_job_queue:90 empties the job queue of a BMC "
        "that has one.",
    ),
    cfg.ListOpt(
        "permitted_image_formats",
        default=["raw", "gpt", "qcow2", "iso"],
        help="Formats that images of deployments may have, whatever they are called: raw (with gpt, partitions), "
        "qcow2, iso, and if need be vmdk, vdi and vhdx, which agents convert. Agents get the list, too.",
    ),
    cfg.BoolOpt(
        "conductor_always_validates_images",
        default=False,
        help="Fail deployments whose image the conductor cannot read. Otherwise an image whose format is known is left "
        "to the agent then, which looks into all but raw ones before it writes them.",
    ),
    cfg.BoolOpt(
        "disable_deep_image_inspection",
        default=False,
        help="Neither conductors nor agents look into images. UNSAFE: an image of a user's can have qemu-img read "
        "files and networks of the ramdisk.",
    ),
    cfg.IntOpt(
        "graceful_shutdown_timeout",
        default=60,
        min=0,
        help="Seconds that steps which run get to end when the conductor is asked to stop; what follows them is handed "
        "over to other conductors. A step that has not ended by then is recovered as after a kill.",
    ),
]
