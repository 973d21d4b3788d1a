"""The command behind devstack/quickstart.sh: starts everything, tells the story, serves until Ctrl-C, cleans up."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import requests
from keystoneauth1.exceptions import ClientException
from openstack.exceptions import SDKException

from ingot.rack.process import RackError
from quickstart import bmc
from quickstart.display import Display
from quickstart.failure import Failure
from quickstart.lab import BMC_USER, Lab
from quickstart.story import Story

_MAX_MACHINES = 100


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="quickstart.sh",
        description="Take machines of a virtual rack from unknown to active, and prove each step of it.",
    )
    parser.add_argument("--once", action="store_true", help="stop at the end, also on a terminal")
    parser.add_argument("--keep", action="store_true", help="keep database, disks and logs also after a success")
    parser.add_argument("--machines", type=int, default=3, metavar="N", help="how many machines (default 3)")
    parser.add_argument("--work-dir", type=Path, metavar="DIR", help="for database, disks and logs; is always kept")
    parser.add_argument("--image", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build-dir", type=Path, required=True, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not 1 <= given.machines <= _MAX_MACHINES:
        parser.error(f"--machines {given.machines}: must be from 1 to {_MAX_MACHINES}")
    if given.work_dir and given.work_dir.exists() and any(given.work_dir.iterdir()):
        parser.error(f"--work-dir {given.work_dir}: is not empty")
    return given


def main() -> int:
    """Run the quickstart; return 0 when everything was as it must be, 1 with the reason otherwise."""
    given = arguments()
    display = Display()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C
    work_dir = given.work_dir or Path(tempfile.mkdtemp(prefix="run-", dir=given.build_dir))
    work_dir.mkdir(parents=True, exist_ok=True)
    lab = Lab(work_dir.absolute(), given.image, given.machines)
    try:
        _run(lab, given, display)
    except (Failure, RackError, SDKException, ClientException, requests.RequestException, OSError) as error:
        display.bad(f"FAILED after {display.elapsed:.1f} s: {error}\nLogs, database and disks are in {work_dir}")
        return 1
    except Exception:  # noqa: BLE001 - the edge: a mistake of the quickstart's own, or an answer that it does not know
        display.bad(f"FAILED after {display.elapsed:.1f} s: {traceback.format_exc()}Logs are in {work_dir}")
        return 1
    except KeyboardInterrupt:
        display.bad(f"interrupted after {display.elapsed:.1f} s; logs, database and disks are in {work_dir}")
        return 130
    if not given.work_dir and not given.keep:
        shutil.rmtree(work_dir)
    return 0


def _run(lab: Lab, given: argparse.Namespace, display: Display) -> None:
    display.heading(f"start ingot, ingot-rack with {given.machines} machines, and a file server")
    with lab:
        display.say(f"  API {lab.api_url}, web console {lab.console_url}, work directory {lab.work_dir}")
        Story(lab, given.image, display).tell()
        display.heading(f"done: everything was as it must be, in {display.elapsed:.1f} s")
        if display.is_terminal and not given.once:
            display.say(_describe_next_steps(lab))
            _serve(lab)


def _serve(lab: Lab) -> None:
    """Keep everything running until Ctrl-C."""
    try:
        while True:
            lab.check()
            time.sleep(1)
    except KeyboardInterrupt:
        print("\nstopping")


def _describe_next_steps(lab: Lab) -> str:
    machine = lab.machines[0]
    ask = " ".join(bmc.command_line(machine, BMC_USER))
    return f"""
Everything keeps running until you press Ctrl-C. The API needs no password and is at {lab.api_url}

  in Python     openstack.connect(auth_type="none", endpoint="{lab.api_url}").baremetal
  in a shell    pip install python-openstackclient python-ironicclient
                export OS_AUTH_TYPE=none OS_ENDPOINT={lab.api_url}
                openstack baremetal node list
  by hand       curl {lab.api_url}/ingot/v1/nodes/{machine["name"]}/timeline
  the BMC       IPMI_PASSWORD={lab.bmc_password} {ask} chassis status
  the logs      {lab.logs}

The {lab.count} machines are in the web console: {lab.console_url}"""


if __name__ == "__main__":
    sys.exit(main())
