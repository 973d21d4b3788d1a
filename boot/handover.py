"""Lines for an operator's own DHCP server: which loader firmware gets, and that iPXE goes on with the API.

Addresses, networks and who is answered stay with that server. Where its TFTP server is, it knows itself.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from ingot.boot import dnsmasq
from ingot.boot.settings import Settings
from ingot.common.boot_loaders import CLIENTS

_TFTP = "/srv/tftp"


def _introduce(settings: Settings, mark: str) -> list[str]:
    files = sorted({client.file(settings.chain) for client in CLIENTS if not client.by_http})
    return [
        f"{mark} Firmware starts one of these files by TFTP: {', '.join(files)}.",
        f"{mark} Put those that your machines need into the directory of the TFTP server, such as {_TFTP}.",
        f"{mark} iPXE then asks Ingot at {settings.script}, by HTTP.",
    ]


def _write_dnsmasq(settings: Settings) -> str:
    return "\n".join([*_introduce(settings, "#"), *dnsmasq.list_boot(settings._replace(networks=())), ""])


def _write_kea(settings: Settings) -> str:
    """Return client classes of Kea, whose expressions know options by their numbers."""
    is_ipxe = "option[175].exists or substring(option[77].hex,0,4) == 'iPXE'"
    classes: list[dict[str, Any]] = [{"name": "ingot-ipxe", "test": is_ipxe, "boot-file-name": settings.script}]
    for client in CLIENTS:
        codes = " or ".join(f"option[93].hex == 0x{code:04X}" for code in client.codes)
        found = {
            "name": f"ingot-{client.tag}",
            "test": f"not member('ingot-ipxe') and ({codes})",
            "boot-file-name": settings.locate(client, client.file(settings.chain)),
        }
        if client.by_http:
            found["option-data"] = [{"name": "vendor-class-identifier", "data": "HTTPClient", "always-send": True}]
        classes.append(found)
    lines = [*_introduce(settings, "//"), "// To be merged into Dhcp4:"]
    return "\n".join([*lines, json.dumps({"client-classes": classes}, indent=2), ""])


def _write_dhcpd(settings: Settings) -> str:
    lines = [
        *_introduce(settings, "#"),
        "option arch code 93 = unsigned integer 16;",
        'if option user-class = "iPXE" {',
    ]
    lines += [f'  filename "{settings.script}";']
    for client in CLIENTS:
        # A number would be an octet; the option has two (dhcp-eval(5): a list of octets, in hexadecimal).
        codes = " or ".join(f"option arch = {code >> 8:02x}:{code & 255:02x}" for code in client.codes)
        lines += [f"}} elsif {codes} {{", f'  filename "{settings.locate(client, client.file(settings.chain))}";']
        if client.by_http:
            lines.append('  option vendor-class-identifier "HTTPClient";')
    return "\n".join([*lines, "}", ""])


FORMS: Mapping[str, Callable[[Settings], str]] = {
    "dnsmasq": _write_dnsmasq,
    "kea": _write_kea,
    "dhcpd": _write_dhcpd,
}
"""What writes the lines, by DHCP server."""
