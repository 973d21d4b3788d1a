"""What every other part of Ingot uses and what uses none of them."""

import sys

from oslo_service import backend

# Ingot works with threads. eventlet comes along with oslo.service, and libraries would load it for being there, which
# costs each process 20 MiB.
sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
