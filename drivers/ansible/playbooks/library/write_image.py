"""Writes an image to a disk of the machine; a raw one while it is fetched, others when they are whole."""

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable
from typing import IO

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

_CHUNK = 1024 * 1024
_TIMEOUT = 60
_BEGINNING = 4 * _CHUNK

_OPTIONS = {
    "device": {"type": "path", "required": True},
    "url": {"type": "str", "required": True, "no_log": True},  # it may have a token
    "disk_format": {"type": "str", "required": True},
    "checksum": {"type": "str", "required": True},
    "authorization": {"type": "str", "no_log": True},
    "validate_certs": {"type": "bool", "default": True},
    "ca_file": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path"},
}


def main() -> None:
    """Run as a module of Ansible."""
    module = AnsibleModule(argument_spec=_OPTIONS)
    options = module.params
    try:
        with open(options["device"], "r+b") as disk:
            if options["disk_format"] == "raw":
                _stream(module, disk)
            else:
                _convert(module)
            disk.flush()
            os.fsync(disk.fileno())
    except Exception as exc:  # noqa: BLE001 - a module's end: what urllib raises is many things
        module.fail_json(msg="the image cannot be written to {}: {}".format(options["device"], exc))
    _read_partitions(module)
    module.exit_json(changed=True)


def _fetch(module: AnsibleModule, write: Callable[[bytes], object]) -> None:
    """Fetch the image; fail unless it has its checksum."""
    options = module.params
    algorithm, _, expected = options["checksum"].partition(":")
    digest = hashlib.new(algorithm)
    headers = {"Authorization": options["authorization"]} if options["authorization"] else {}
    answer = open_url(
        options["url"],
        headers=headers,
        unredirected_headers=list(headers),  # a registry's token is for no other server
        timeout=_TIMEOUT,
        use_proxy=False,
        validate_certs=options["validate_certs"],
        ca_path=options["ca_file"],
        client_cert=options["client_cert"],
        client_key=options["client_key"],
    )
    while True:
        data = answer.read(_CHUNK)
        if not data:
            break
        digest.update(data)
        write(data)
    if digest.hexdigest() != expected:
        raise ValueError(f"its {algorithm} is {digest.hexdigest()}, and not {expected}")


def _stream(module: AnsibleModule, disk: IO[bytes]) -> None:
    try:
        _fetch(module, disk.write)
    except Exception:
        disk.seek(0)
        disk.write(bytes(_BEGINNING))  # what is not the image must not be started
        raise


def _convert(module: AnsibleModule) -> None:
    disk_format, device = module.params["disk_format"], module.params["device"]
    with tempfile.NamedTemporaryFile() as image:
        _fetch(module, image.write)
        image.flush()
        command = ["qemu-img", "info", "--output=json", "-f", disk_format, image.name]
        about = json.loads(module.run_command(command, check_rc=True)[1])
        own = about.get("format-specific", {}).get("data", {})
        if about.get("backing-filename") or own.get("data-file"):
            raise ValueError("it refers to other files")
        command = ["qemu-img", "convert", "-n", "-t", "none", "-f", disk_format, "-O", "host_device"]
        module.run_command([*command, image.name, device], check_rc=True)


def _read_partitions(module: AnsibleModule) -> None:
    """Have the kernel see what is on the disk; the second table of a GPT goes to the end of a larger disk."""
    device = module.params["device"]
    if not stat.S_ISBLK(os.stat(device).st_mode):
        return  # a file, of which the kernel knows nothing
    listed = module.run_command(["parted", "-s", "-m", device, "print"])[1]
    if ":gpt:" in listed:
        module.run_command(["sgdisk", "--move-second-header", device])
    module.run_command(["partx", "--update", device])
    module.run_command(["udevadm", "settle"])


if __name__ == "__main__":
    main()
