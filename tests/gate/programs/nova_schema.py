"""Reads a request with events and Nova's answer, as JSON, and says what Nova's own rules for both have against them.

Run in Nova's environment; nothing is printed if all is well.
"""

import json
import sys

from nova import monkey_patch

monkey_patch.patch(backend="threading")  # as Nova's services do, before anything else is imported

from nova import exception  # noqa: E402
from nova.api.openstack.compute.schemas import server_external_events as schema  # noqa: E402
from nova.api.validation import validators  # noqa: E402


def main() -> None:
    request, answer = json.load(sys.stdin)
    for rules, given in ((schema.create_v276, request), (schema.create_response_v276, answer)):
        try:
            validators._SchemaValidator(rules).validate(given)
        except exception.ValidationError as exc:
            print(exc)


if __name__ == "__main__":
    main()
