"""Checks with Chromium that no page of the built guides is wider than its window: python doc/check_widths.py DIRECTORY.

Needs Debian's package chromium. Ends with 1 and the pages that are too wide, and what makes them so.
"""

import functools
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Sequence

WIDTHS = (1280, 400)
"""Of a desktop's window and of a telephone, in pixels."""

_LIMIT_S = 300 * max(1.0, float(os.environ.get("INGOT_TEST_PATIENCE") or 1))

_MEASURE = """<body><pre id="found"></pre><script>
const FRAMES = "pre, .highlight, .table-wrapper, .graphviz";  // what scrolls in a frame of its own
async function measure() {
  const found = [];
  for (const width of WIDTHS) for (const page of PAGES) {
    const frame = document.createElement("iframe");
    frame.style.width = width + "px"; frame.style.height = "900px"; frame.src = page;
    document.body.append(frame);
    await new Promise(done => { frame.onload = done; });
    const root = frame.contentDocument.documentElement;
    if (root.scrollWidth > root.clientWidth + 1) {
      const wide = [...root.querySelectorAll("article *")].filter(one =>
        one.getBoundingClientRect().right > root.clientWidth + 1 && !one.closest(FRAMES));
      found.push([width, page, root.scrollWidth, wide.slice(-1).map(one => one.outerHTML.slice(0, 200))]);
    }
    frame.remove();
  }
  document.getElementById("found").textContent = JSON.stringify(found);
}
measure();
</script></body>"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Drop the log of requests."""


def measure(directory: pathlib.Path, pages: Sequence[str]) -> list[list[object]]:
    """Return the pages that are too wide: width of the window, page, width of the page, what is widest."""
    script = _MEASURE.replace("WIDTHS", json.dumps(WIDTHS), 1).replace("PAGES", json.dumps(list(pages)), 1)
    measuring = directory / "measure.html"
    measuring.write_text(script)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(directory)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=600000", "--dump-dom"]
        command = ["chromium", *options, f"http://127.0.0.1:{server.server_port}/{measuring.name}"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True).stdout
    finally:
        server.shutdown()
        measuring.unlink()
    _, begins, rest = shown.partition('<pre id="found">[')
    if not begins:
        raise RuntimeError(f"Chromium has not measured: {shown[-500:]}")
    found: list[list[object]] = json.loads("[" + rest.partition("</pre>")[0])
    return found


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1])
    names = [str(path.relative_to(place)) for path in sorted(place.rglob("*.html"))]
    wide = measure(place, names)
    for window, page, width, what in wide:
        print(f"{page} is {width} pixels wide in a window of {window}: {what}")
    print(f"{len(names)} pages, {len(wide)} too wide")
    sys.exit(1 if wide or not names else 0)
