"""Modules that are loaded when they are used first (used by all): most processes have them never, and they are large.

For type checkers there is an import, which does not take place when the program runs::

    if TYPE_CHECKING:
        import re2
    else:
        re2 = later.Module("re2")
"""

import importlib
from typing import Any


class Module:
    """Stands for a module.

    :param name: with its packages.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
