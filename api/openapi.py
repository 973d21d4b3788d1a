"""Write the API's description into a file, or compare it with one.

python -m ingot.api.openapi FILE           writes the document
python -m ingot.api.openapi --check FILE   exits 1 if the file is not what the tables say
"""

import argparse
import json
import pathlib
import sys

from ingot.api import routes
from ingot.api.web import description


def main() -> int:
    """Run the command. Exit code 0; 1 when the file differs."""
    parser = argparse.ArgumentParser(prog="python -m ingot.api.openapi", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and exit 1 if the file differs")
    parser.add_argument("file", type=pathlib.Path, help="usually doc/openapi.json")
    given = parser.parse_args()
    text = json.dumps(description.build_document(routes.ROUTES), indent=1, ensure_ascii=False) + "\n"
    if not given.check:
        given.file.write_text(text)
        return 0
    if given.file.exists() and given.file.read_text() == text:
        return 0
    sys.stderr.write(f"{given.file} is not what the tables say: python -m ingot.api.openapi {given.file}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
