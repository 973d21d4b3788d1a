"""ingot top and ingot explain: what the fleet needs, and why one node is where it is, in a terminal."""

import argparse
import functools
import json
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib import parse

from ingot.common import explained, later
from ingot.terminal import access, pages
from ingot.terminal.access import NotReached
from ingot.terminal.client import Client
from ingot.terminal.pages import Line

if TYPE_CHECKING:
    from ingot.terminal import screen
else:
    screen = later.Module("ingot.terminal.screen")  # what is printed once needs no rich

COMMANDS = {
    "top": "Show what the fleet needs and does: nodes to look at with the next thing to do, work under way, counts.",
    "explain": "Show why a node is where it is, what it waits for, and what its steps took.",
}
"""The commands, each with what it does."""

_OVERVIEW = "/ingot/v1/overview"


def main(given: Sequence[str]) -> int:
    """Run a command. Exit code 0; 1: the API cannot be reached, or refuses; 2: the command line is wrong.

    :param given: the command and its arguments.
    """
    name = given[0]
    logging.getLogger("keystoneauth").setLevel(logging.CRITICAL)  # what it warns of, errors say
    options = _parse(name, given[1:])
    try:
        client = Client(access.open_door(options))
        if name == "top":
            _run_top(client, options)
        else:
            _run_explain(client, options)
    except NotReached as exc:
        sys.stderr.write(f"ingot {name}: {exc.message}\n")
        return 1
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:  # head has seen enough
        sys.stderr.close()
    return 0


def _parse(name: str, given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"ingot {name}", description=COMMANDS[name])
    if name == "top":
        parser.add_argument("--once", action="store_true", help="Print it once, as plain text.")
    else:
        parser.add_argument("node", metavar="NODE", help="Name or UUID.")
        parser.add_argument("--follow", action="store_true", help="Keep it on the screen, and follow what happens.")
        parser.add_argument("--once", action="store_true", help="Print it once, as plain text: the default.")
    parser.add_argument("--json", action="store_true", help="Print the API's answer once.")
    access.add_options(parser)
    return parser.parse_args(given)


def _run_top(client: Client, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(client.get(_OVERVIEW)))
    elif options.once or not sys.stdout.isatty():
        _print(pages.list_overview(client.get(_OVERVIEW), client.endpoint, client.now()))
    else:

        def read() -> "screen.Page":
            found = client.get(_OVERVIEW)
            show = functools.partial(pages.list_overview, found, client.endpoint, bars=True)
            return screen.Page(lambda: show(now=client.now()), pages.find_stale_at(found))

        screen.Screen(client, read).run()


def _run_explain(client: Client, options: argparse.Namespace) -> None:
    path = f"/ingot/v1/nodes/{parse.quote(options.node, safe='')}"
    if options.json:
        print(json.dumps(client.get(f"{path}/explanation")))
        return

    def read_lines() -> Iterable[Line]:
        found, timeline = client.get(f"{path}/explanation"), client.get(f"{path}/timeline")
        return pages.list_explanation(found, timeline, client.now())

    if options.follow and not options.once:

        def read() -> "screen.Page":
            found, timeline = client.get(f"{path}/explanation"), client.get(f"{path}/timeline")
            return screen.Page(lambda: pages.list_explanation(found, timeline, client.now()))

        screen.Screen(client, read).run()
    else:
        _print(read_lines())


def _print(lines: Iterable[Line]) -> None:
    for line in lines:
        print(explained.clean(line.text))
