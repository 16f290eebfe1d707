#!/usr/bin/env python3
"""Makes the pictures of the pages from a real mount: docs/pictures/make.py [OGIVE]

Mounts this tree, reads it in a loop, and draws the output of `ogive stat` and a flame graph of the
daemon (`ogive profile`). Writes stat.svg and flame.svg into its own folder. Needs FUSE, and the right
to sample (root, or kernel.perf_event_paranoid at most 1).
"""

import html
import json
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
SECONDS = 8


def run(*command):
    """Runs a command and returns its output."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def read_all(root, stop):
    """Reads the tree's sources in a loop until `stop` is set."""
    while not stop.is_set():
        for path in sorted(root.rglob("*.rs")):
            if stop.is_set():
                return
            path.read_bytes()


def terminal(text):
    """Lines of a terminal as SVG."""
    lines = text.rstrip("\n").split("\n")
    width = max(map(len, lines)) * 8 + 32
    height = len(lines) * 20 + 32
    rows = "\n".join(
        f'<text x="16" y="{32 + 20 * number}" xml:space="preserve">{html.escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}">\n'
        '<style>text { font: 13px monospace; fill: #e6e6e6 }</style>\n'
        f'<rect width="100%" height="100%" rx="8" fill="#1e1e1e"/>\n{rows}\n</svg>\n'
    )


def main():
    """Mounts, reads, draws, unmounts."""
    ogive = sys.argv[1] if len(sys.argv) > 1 else str(TREE / "target" / "release" / "ogive")
    with tempfile.TemporaryDirectory() as view:
        run(ogive, "mount", "--direct-io", str(TREE / "crates"), view)
        stop = threading.Event()
        readers = [threading.Thread(target=read_all, args=(Path(view), stop)) for _ in range(2)]
        try:
            for reader in readers:
                reader.start()
            daemon = str(json.loads((Path(view) / ".ogive" / "mount").read_text())["pid"])
            flame = HERE / "flame.svg"
            profile = [ogive, "profile", "-p", daemon, "--for", f"{SECONDS}s", "-o", str(flame)]
            with subprocess.Popen(profile) as sampling:
                text = run(ogive, "stat", view, "1", str(SECONDS))
            if sampling.returncode != 0:
                sys.exit("ogive profile failed")
        finally:
            stop.set()
            for reader in readers:
                reader.join()
            run(ogive, "unmount", view)
    # A picture in a page runs no scripts.
    drawn = re.sub(r"<script.*?</script>", "", flame.read_text(), flags=re.DOTALL)
    flame.chmod(0o644)
    flame.write_text(drawn.replace(' onload="init(evt)"', ""))
    (HERE / "stat.svg").write_text(terminal("$ ogive stat /mnt/fast 1\n" + text))


main()
