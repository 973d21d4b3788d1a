"""The command ingot-rack: a rack of virtual machines with real BMCs."""

import argparse
import importlib.metadata
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingot.rack.config import ConfigError, RackConfig, load
from ingot.rack.loop import POOL_PREFIX
from ingot.rack.rack import Rack
from ingot.rack.vendors import VENDORS

# Seconds that requests in progress have when the rack stops.
THREADS_END = 1.0
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser. A flag that is not given leaves the file's or the default value."""
    made = argparse.ArgumentParser(prog="ingot-rack", description=__doc__, argument_default=argparse.SUPPRESS)
    made.add_argument("--version", action="version", version=importlib.metadata.version("ingot"))
    made.add_argument("--config-file", help="TOML or JSON file; its keys are those of the flags, with underscores")
    made.add_argument("--machines", type=int, help=f"how many (default {RackConfig.machines})")
    made.add_argument(
        "--machine",
        "--machine-kind",
        dest="machine_kind",
        help="what they are: simulated, or qemu for machines that run a real agent (default simulated)",
    )
    made.add_argument("--address", help=f"IP address of BMCs and agents (default {RackConfig.address})")
    made.add_argument("--bmc-base-port", type=int, help="UDP port of the first BMC, 0: any (default 6230)")
    made.add_argument("--redfish-port", type=int, help="TCP port of Redfish for all machines, 0: any (default: none)")
    made.add_argument(
        "--redfish-base-port", type=int, help="of the first machine's own Redfish, 0: any (default: none)"
    )
    made.add_argument("--redfish-tls", action=argparse.BooleanOptionalAction, help="Redfish is HTTPS (default yes)")
    made.add_argument("--redfish-vendor", help=f"whose habits Redfish has: {', '.join(VENDORS)} (default generic)")
    made.add_argument("--username", help="of every BMC (default admin)")
    made.add_argument("--password", help="of every BMC (default password)")
    made.add_argument("--boot-url", help=f"URL of a machine's iPXE script (default {RackConfig.boot_url})")
    made.add_argument("--state-dir", help="disks and boot devices (default ./rack-state)")
    made.add_argument("--control-port", type=int, help="TCP port of the control API, 0: any (default 6229)")
    made.add_argument("--name-prefix", help="machines are called PREFIX0, PREFIX1, ... (default machine-)")
    made.add_argument("--mac-prefix", help="first half of the MACs (default 52:54:00)")
    made.add_argument("--nics", type=int, help="network cards of a machine (default 1)")
    made.add_argument("--disks", type=int, help="disks of a machine (default 2)")
    made.add_argument("--disk-size", help="bytes, or a text such as 8G (default 8G)")
    made.add_argument(
        "--disk-kinds",
        nargs="+",
        help="of the first, second, ... disk: ata or nvme, and what its secure "
        "erase does: ata:unsupported, nvme:frozen, ata:failing; or ata:read-only (default ata)",
    )
    made.add_argument("--memory", type=int, help="MiB (default 4096)")
    made.add_argument("--cpus", type=int, help="processors of a QEMU machine (default 2)")
    made.add_argument("--tls", action=argparse.BooleanOptionalAction, help="agents speak HTTPS (default yes)")
    made.add_argument("--agent-base-port", type=int, help="TCP port of the first agent, 0: any free (default 0)")
    made.add_argument("--agent-version", help=f"(default {RackConfig.agent_version})")
    made.add_argument("--ca-file", help="certificates that agents trust for an https service")
    for name, text in _TIMES.items():
        default = getattr(RackConfig, name)
        made.add_argument(f"--{name.replace('_', '-')}", type=float, help=f"seconds {text} (default {default})")
    made.add_argument("--log-file", help="write the log there instead of to standard error")
    made.add_argument("--debug", action="store_true", help="log more")
    return made


_TIMES = {
    "redfish_task_time": "that a Redfish task lasts",
    "bmc_restart_time": "that a BMC which was reset does not answer",
    "boot_delay": "from power on to the boot device",
    "boot_retry": "before a firmware that found nothing looks again, 0: never",
    "os_boot_delay": "from the boot sector to a running system",
    "shutdown_delay": "from the power button to off",
    "power_off_delay": "from the agent's power_off to off",
    "agent_start_delay": "from kernel to agent",
    "agent_settle": "at most, from a command's end to its heartbeat",
    "heartbeat_max": "at most, between two heartbeats",
    "retry_first": "before a refused lookup or heartbeat is repeated the first time",
    "retry_max": "at most, between two of these",
    "lookup_timeout": "until an agent whose machine is unknown gives up",
}


def _set_up_logging(log_file: str | None, debug: bool) -> None:
    handler = logging.FileHandler(log_file) if log_file else logging.StreamHandler(sys.stderr)
    logging.basicConfig(level=logging.DEBUG if debug else logging.INFO, format=LOG_FORMAT, handlers=[handler])
    # These would log URLs, and an agent's URL holds its token.
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.ERROR)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a rack until SIGTERM or SIGINT; prints one line of JSON when every port answers."""
    flags: dict[str, Any] = vars(parser().parse_args(argv))
    path, log_file, debug = (
        flags.pop("config_file", None),
        flags.pop("log_file", None),
        flags.pop("debug", False),
    )
    try:
        config = load(path, flags)
        _set_up_logging(log_file and str(Path(log_file).absolute()), debug)
        rack = Rack(config)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            # The main thread may be within its wait for the event, which holds a lock that set() takes.
            signal.signal(number, lambda *_: threading.Thread(target=stop.set, daemon=True).start())
        rack.start()
    except (ConfigError, OSError) as error:
        print(f"ingot-rack: {error}", file=sys.stderr)
        return 1
    print(json.dumps(rack.describe()), flush=True)
    stop.wait()
    rack.stop()
    _leave_no_thread_waiting()
    return 0


def _leave_no_thread_waiting() -> None:
    """End the process at once if a thread still waits for a foreign server, whose answer is needed no more.

    Python would wait for it, as long as that server likes.
    """
    deadline = time.monotonic() + THREADS_END
    while waiting := [thread.name for thread in threading.enumerate() if thread.name.startswith(POOL_PREFIX)]:
        if time.monotonic() > deadline:
            logging.getLogger(__name__).info("left while %s waited for an answer", ", ".join(waiting))
            logging.shutdown()
            os._exit(0)
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
