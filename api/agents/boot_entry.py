"""What machines ask for before they have a script of their own: iPXE's first one, loaders, settings of the agent."""

from ingot.api.agents import boot_kernel
from ingot.api.agents.media import settings
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import boot_loaders, errors
from ingot.common.media import cpio

_FILE = Answer(shows=Plain({"type": "string", "format": "binary"}), media="application/octet-stream")

_OWN = "chain --replace --autofree boot/ipxe/${mac:hexhyp}?arch=${buildarch} ||"
_ATTEMPTS, _PAUSE_S = 12, 5
# By way of the address that this came from. A firmware that gets control back tries its next boot device.
_FIRST = "\n".join(
    ["#!ipxe", *[_OWN, f"sleep {_PAUSE_S}"] * _ATTEMPTS, "echo Ingot gives no boot script.", "exit 1", ""]
)


@operation(answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def first_script(_call: Call) -> Reply:
    """Show what iPXE starts with on all machines: it asks for the script of the card that has booted."""
    return Reply(_FIRST)


@operation(answer=_FILE)
def loader(call: Call, name: str) -> Reply:
    """Send a boot loader, for firmware that fetches it by HTTP."""
    if name not in boot_loaders.FILES:
        raise errors.NotFound(f"There is no boot loader {name[:40]}. There are: {', '.join(boot_loaders.FILES)}.")
    try:
        return Reply(boot_loaders.locate(call.conf, name).read_bytes())
    except OSError as exc:
        reason = boot_loaders.describe_missing(call.conf, [name]).rstrip(".")
        raise errors.ServiceUnavailable(what=f"The boot loader {name}", reason=reason) from exc


@operation(answer=_FILE)
def agent_settings(call: Call) -> Reply:
    """Send the initial ramdisk that has the authorities in it by which the agent verifies the API."""
    if not call.conf.agent.api_ca_file:
        raise errors.NotFound(f"There is no /boot/{boot_kernel.SETTINGS}: [agent] api_ca_file is not set.")
    try:
        return Reply(cpio.pack(settings.build(call.conf, {}, "")))
    except errors.ImageError as exc:
        raise errors.ServiceUnavailable(what="What the agent verifies the API by", reason=exc.message) from exc
