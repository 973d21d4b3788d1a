"""What tests of drivers are made of, also of drivers in packages of their own; the page *Testing a driver* explains it.

``memory_task`` has a task without a database, ``bench`` a machine with its node, ``contracts`` what each type of
interface must do, ``contracts.suites`` the test classes of contracts on benches, and ``stand_in`` a service for agents.
A driver's tests import it; the services never do. It needs what ``pip install ingot[driver-kit]`` installs.
"""
