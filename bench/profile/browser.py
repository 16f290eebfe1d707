#!/usr/bin/env python3
"""Opens pages of ogive in a real browser and uses them.

usage: browser.py FLAME.html [--difference DIFF.html] [--page OTHER.html ...] [--shots DIRECTORY]

It tests zoom, search, reset, filters, time slices, flip and colour schemes. It fails on an error in the
console, on a request to anything but the file, and if a click has no effect. It needs chromium.
"""
import argparse
import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


class Browser:
    """A small client of the DevTools protocol, over one WebSocket (RFC 6455)."""

    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="browser.")
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={self.home}",
             "--window-size=1200,900", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = os.path.join(self.home, "DevToolsActivePort")
        for _ in range(600):
            if os.path.exists(port_file) and os.path.getsize(port_file):
                break
            time.sleep(0.1)
        port = int(open(port_file).readline())
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60))
        path = next(page for page in pages if page["type"] == "page")["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.socket.recv(1)
        self.number, self.events = 0, []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError("the browser has closed the connection")
            data += part
        return data

    def receive(self):
        message = b""
        while True:
            head = self.exactly(2)
            size = head[1] & 127
            if size == 126:
                size = int.from_bytes(self.exactly(2), "big")
            elif size == 127:
                size = int.from_bytes(self.exactly(8), "big")
            message += self.exactly(size)
            if head[0] & 128:
                return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        data = json.dumps({"id": self.number, "method": method, "params": parameters}).encode()
        mask = os.urandom(4)
        size = len(data)
        head = bytes([0x81])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65536:
            head += bytes([0x80 | 126]) + size.to_bytes(2, "big")
        else:
            head += bytes([0x80 | 127]) + size.to_bytes(8, "big")
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, path, scheme="light"):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.url = "file://" + os.path.abspath(path)
        self.call("Page.navigate", url=self.url)
        for _ in range(300):
            if self.run("document.readyState") == "complete" and self.run("location.href") == self.url:
                break
            time.sleep(0.1)

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def shot(self, path):
        size = self.run("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": min(size[0], 1400), "height": min(size[1], 2400), "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        open(path, "wb").write(base64.b64decode(data))

    def faults(self):
        """Returns errors of the console, and requests to anything but the page."""
        self.run("1")
        found = []
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append("exception: " + json.dumps(about["exceptionDetails"])[:300])
            if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
                found.append("console: " + json.dumps(about["args"])[:300])
            if method == "Log.entryAdded" and about["entry"]["level"] == "error":
                found.append("log: " + about["entry"]["text"])
            if method == "Network.requestWillBeSent":
                url = about["request"]["url"]
                if url != self.url and not url.startswith(("data:", "blob:")):
                    found.append("request to " + url)
        return found

    def end(self):
        try:
            self.call("Browser.close")
        except (OSError, EOFError, RuntimeError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.home, ignore_errors=True)


# A hash of the canvas's pixels.
INK = """(() => { const c = document.querySelector('.ogive-flame canvas.%s');
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let h = 7;
  for (let i = 0; i < d.length; i += 16) h = (h * 31 + d[i] + d[i + 1] * 3 + d[i + 2] * 7) %% 2147483647; return h + ':' + c.height; })()"""


def at(browser, selector, across, down, scroll=True):
    """Scrolls an element into view; returns a point in it: part of its width, pixels from its top."""
    into_view = "e.scrollIntoView({block: 'start'});" if scroll else ""
    return browser.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); {into_view}"
                       f" const r = e.getBoundingClientRect(); return [r.left + r.width * {across}, r.top + {down}]; }})()")


def still(browser):
    """Whether the graph stays in place while the pointer moves over all boxes."""
    rows = browser.run("document.querySelector('.ogive-flame canvas.graph').getBoundingClientRect().height") / 17
    for row in range(int(rows)):
        for across in (0.02, 0.35, 0.6, 0.9):
            place = at(browser, ".ogive-flame canvas.graph", across, 17 * row + 8)
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
            if at(browser, ".ogive-flame canvas.graph", across, 17 * row + 8, scroll=False) != place:
                return False
    return True


def use_flame(browser, check):
    ink = lambda: browser.run(INK % "graph")
    whole = ink()
    check("the graph has boxes", browser.run("document.querySelector('.ogive-flame canvas.graph').height > 30"))
    # Clicks along the second row, until one hits a box.
    zoomed = whole
    for across in (0.05, 0.3, 0.5, 0.7, 0.9, 0.15, 0.97):
        browser.click(*at(browser, ".ogive-flame canvas.graph", across, 17 * 1.5))
        zoomed = ink()
        if zoomed != whole:
            break
    check("a click zooms", zoomed != whole)
    check("pointing does not move the graph", still(browser))
    browser.click(*at(browser, ".ogive-flame canvas.graph", 0.5, 8))
    check("a click on the first box zooms out", ink() == whole)
    detail = browser.run("document.querySelector('.ogive-flame .detail').textContent")
    check("pointing names a function and its share", "% of all" in detail)
    check("pointing does not move the whole graph", still(browser))
    browser.run("(() => { const s = document.querySelector('.ogive-flame input'); s.value = '.'; s.dispatchEvent(new Event('input')); })()")
    matched = browser.run("document.querySelector('.ogive-flame .matched').textContent")
    check(f"search shows the share of matches ({matched})", matched.startswith("matched: ") and matched != "matched: 0.00%")
    check("search colours boxes", ink() != whole)
    browser.run("(() => { const s = document.querySelector('.ogive-flame input'); s.value = '('; s.dispatchEvent(new Event('input')); })()")
    check("a bad expression is marked", browser.run("document.querySelector('.ogive-flame input').className") == "bad")
    button = lambda text: browser.run(f"[...document.querySelectorAll('.ogive-flame button')].find(b => b.textContent === '{text}').click()")
    button("reset")
    check("reset restores the graph", ink() == whole and browser.run("document.querySelector('.ogive-flame input').className") == "")
    button("flip")
    check("flip inverts the graph", ink() != whole)
    button("flip")
    check("flip restores the graph", ink() == whole)
    rows = browser.run("document.querySelectorAll('.ogive-flame table').length")
    check("there are totals by role and by module", rows == 2)
    browser.run("document.querySelector('.ogive-flame table .link').click()")
    check("a role can be chosen", browser.run("document.querySelectorAll('.ogive-flame tr.chosen').length") == 1)
    button("reset")
    check("reset ends the choice", ink() == whole)
    if browser.run("!!document.querySelector('.ogive-flame canvas.slices')"):
        browser.click(*at(browser, ".ogive-flame canvas.slices", 0.1, 20))
        browser.click(*at(browser, ".ogive-flame canvas.slices", 0.3, 20))
        text = browser.run("[...document.querySelectorAll('.ogive-flame .facts')].map(e => e.textContent).join(' ')")
        check("a slice of time can be chosen", "slice from" in text and ink() != whole)
        browser.click(*at(browser, ".ogive-flame canvas.slices", 0.6, 20))
        button("reset")
        check("reset ends the slice", ink() == whole)
        browser.click(*at(browser, ".ogive-flame canvas.slices", 0.5, 20))
        text = browser.run("[...document.querySelectorAll('.ogive-flame .facts')].map(e => e.textContent).join(' ')")
        found = text[text.index("slice from"):].split()
        check("a click after reset begins a new slice", float(found[5]) - float(found[2]) < 0.2)
        button("reset")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("flame")
    arguments.add_argument("--difference")
    arguments.add_argument("--page", action="append", default=[])
    arguments.add_argument("--shots")
    options = arguments.parse_args()
    program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if not program:
        print("skipped: no chromium on this machine")
        return 77
    failed = []

    def check(what, holds):
        print(("ok      " if holds else "FAILED  ") + what)
        if not holds:
            failed.append(what)

    browser = Browser(program)
    try:
        pages = [(options.flame, True)] + ([(options.difference, True)] if options.difference else [])
        pages += [(page, False) for page in options.page]
        for path, is_flame in pages:
            print("== " + path)
            for scheme in ("light", "dark"):
                browser.open(path, scheme)
                if scheme == "light" and is_flame:
                    use_flame(browser, check)
                if options.shots:
                    time.sleep(1)
                    name = os.path.basename(path).removesuffix(".html")
                    browser.shot(os.path.join(options.shots, f"{name}-{scheme}.png"))
                faults = browser.faults()
                check(f"{scheme}: no error, no request outside {faults}", not faults)
    finally:
        browser.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
