"""ingot: with the name of a client's command, a client of the API in a terminal; else API and conductor at once.

Each loads only what it needs: a client starts in a moment.
"""

import sys
from typing import TYPE_CHECKING

from ingot.common import later

if TYPE_CHECKING:
    from ingot.conductor.cmd import all_in_one
    from ingot.terminal.cmd import main as terminal
else:
    all_in_one = later.Module("ingot.conductor.cmd.all_in_one")
    terminal = later.Module("ingot.terminal.cmd.main")

_OF_CLIENTS = ("top", "explain")


def main() -> int:
    """Run the command. For exit codes see the two modules."""
    given = sys.argv[1:]
    if given[:1] and given[0] in _OF_CLIENTS:
        return terminal.main(given)
    return all_in_one.main()
