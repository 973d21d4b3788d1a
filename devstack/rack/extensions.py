"""The table of all agent commands, put together from the modules that hold them."""

from ingot.rack import exports, logs, rescue, standby, steps
from ingot.rack.commands import CommandSpec

COMMANDS: dict[str, CommandSpec] = {
    **steps.COMMANDS,
    **standby.COMMANDS,
    **logs.COMMANDS,
    **rescue.COMMANDS,
    **exports.COMMANDS,
}
