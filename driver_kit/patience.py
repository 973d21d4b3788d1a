"""How long tests wait before they give up: limits that grow on a slow machine.

A passing test waits far less than its limit, so a long limit costs nothing; a short one makes a slow machine lie. Every
limit on wall-clock time that only a failing test reaches is written ``patience.seconds(60)``: time-outs of fixtures,
of ``eventually``, of ``Event.wait``, of commands. Times that are part of what a test checks (an interval, a delay, an
option of the product) stay plain numbers.

``devstack/gate.sh`` measures the machine before each long step and sets ``INGOT_TEST_PATIENCE`` to how many times
slower it is than a quiet one with two cores. Set it by hand, too, to run tests on a slow machine.
"""

import os

VARIABLE = "INGOT_TEST_PATIENCE"

FACTOR = max(1.0, float(os.environ.get(VARIABLE) or 1))


def seconds(limit: float) -> float:
    """Return a limit for this machine.

    :param limit: seconds after which a test gives up on a quiet machine with two cores.
    """
    return limit * FACTOR
