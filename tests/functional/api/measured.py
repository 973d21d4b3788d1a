"""The answers that were measured of Ironic 39."""

import json
import pathlib
from typing import Any

MEASURED: list[dict[str, Any]] = json.loads((pathlib.Path(__file__).parent / "measured.json").read_text())
