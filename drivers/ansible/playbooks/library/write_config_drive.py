"""Adds a partition with a config drive at the end of a disk of the machine."""

import base64
import gzip
import os

from ansible.module_utils.basic import AnsibleModule

_MEBIBYTE = 1024 * 1024
_LARGEST = 64

_OPTIONS = {"device": {"type": "path", "required": True}, "path": {"type": "path", "required": True}}


def main() -> None:
    """Run as a module of Ansible. What ``path`` has, base64 of gzip, is gone afterwards."""
    module = AnsibleModule(argument_spec=_OPTIONS)
    device, path = module.params["device"], module.params["path"]
    try:
        with open(path, "rb") as file:
            content = gzip.decompress(base64.b64decode(file.read()))
        os.unlink(path)
        size = -(-len(content) // _MEBIBYTE) or 1
        if size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST} MiB")
        with open(_add_partition(module, device, size), "r+b") as partition:
            partition.write(content)
            partition.flush()
            os.fsync(partition.fileno())
    except Exception as exc:  # noqa: BLE001 - a module's end
        module.fail_json(msg=f"the config drive cannot be written to {device}: {exc}")
    module.exit_json(changed=True)


def _add_partition(module: AnsibleModule, device: str, size: int) -> str:
    """Return the device of a new partition of so many MiB at the end of the disk."""
    before = _list_partitions(module, device)
    listed = module.run_command(["parted", "-s", "-m", device, "print"], check_rc=True)[1]
    if ":gpt:" in listed:
        command = ["sgdisk", f"--new=0:-{size + 1}MiB:0", "--change-name=0:config-2", device]
    else:
        command = ["parted", "-s", "-a", "optimal", "--", device, "mkpart", "primary", "fat32"]
        command += [f"-{size + 1}MiB", "-1s"]
    module.run_command(command, check_rc=True)
    module.run_command(["partx", "--update", device])
    module.run_command(["udevadm", "settle"])
    (added,) = _list_partitions(module, device) - before
    return added


def _list_partitions(module: AnsibleModule, device: str) -> set[str]:
    said = module.run_command(["lsblk", "--noheadings", "--raw", "--output", "PATH", device], check_rc=True)[1]
    return set(said.split()) - {device}


if __name__ == "__main__":
    main()
