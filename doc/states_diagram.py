"""Draw the state machine from its table, for the documentation: ``python doc/states_diagram.py FILE [--check]``."""

import argparse
import pathlib
import sys

from ingot.common import states

_SHAPES = (
    (states.STABLE, 'shape=box, style="rounded,filled", fillcolor="#d5e8d4"'),
    (states.WORKING, 'shape=box, style="filled", fillcolor="#dae8fc"'),
    (states.WAITING, 'shape=box, style="filled,dashed", fillcolor="#dae8fc"'),
    (states.HELD, 'shape=box, style="filled,dashed", fillcolor="#fff2cc"'),
    (states.FAILED, 'shape=box, style="filled", fillcolor="#f8cecc"'),
)

_CONDUCTOR_EVENTS = frozenset(("done", "fail", "hold", "resume", "wait"))
"""Events that only a conductor causes, as it does all those of working states. The others clients ask for."""


def dot() -> str:
    """Return the table as a Graphviz graph.

    Stable states are green, working blue, waiting dashed, held yellow, failed red. Solid arrows are what a client
    requests, dashed ones what the conductor does.
    """
    lines = [
        "// Generated from common/states.py by python doc/states_diagram.py; do not edit.",
        "digraph states {",
        "  rankdir=LR;",
        '  node [fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=10];',
    ]
    for group, shape in _SHAPES:
        lines += [f'  "{state}" [{shape}];' for state in sorted(group)]
    for state, events in states.TRANSITIONS.items():
        for event, reached in events.items():
            style = "dashed" if state in states.WORKING or event in _CONDUCTOR_EVENTS else "solid"
            lines.append(f'  "{state}" -> "{reached}" [label="{event}", style={style}];')
    return "\n".join([*lines, "}", ""])


def main() -> int:
    """Write the diagram, or with --check compare: exit code 1 when the file is not what the table says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    if not options.check:
        options.file.write_text(dot())
        return 0
    if options.file.read_text() == dot():
        return 0
    print(f"{options.file} is older than common/states.py: run this command without --check", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
