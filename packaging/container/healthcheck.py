"""Ask this container's service whether it is ready, at the address in INGOT_HEALTHCHECK. Exit code 0: it is."""

import os
import ssl
import sys
import urllib.error
import urllib.request

_SECONDS = 8

# The certificate is that of the name that clients use, and this host is asked by its address: it sends nothing secret.
_TLS = ssl.create_default_context()
_TLS.check_hostname = False
_TLS.verify_mode = ssl.CERT_NONE

try:
    address = os.environ["INGOT_HEALTHCHECK"]
    with urllib.request.urlopen(address, timeout=_SECONDS, context=_TLS) as answer:  # noqa: S310 - the operator's
        sys.stdout.write(answer.read().decode())
except urllib.error.HTTPError as exc:
    sys.exit(f"{exc}: {exc.read().decode()}")
except OSError as exc:
    sys.exit(str(exc))
