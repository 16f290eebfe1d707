"""A mount under programs that monitor many hosts. run.sh lists them, with their needs.

Waits end with their condition; their bound of minutes is generous.
"""

import json
import math
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

OGIVE, OTELCOL, PARCA = (os.environ[name] for name in ("OGIVE", "OTELCOL", "PARCA"))
DIST = pathlib.Path(__file__).resolve().parent.parent.parent / "dist"
PLACE = pathlib.Path(sys.argv[1])
PATIENCE_SECONDS = 240
children = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url, **query):
    url += "?" + urllib.parse.urlencode(query) if query else ""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def eventually(what, holds):
    """Waits until `holds` returns a true value, and returns it."""
    until = time.monotonic() + PATIENCE_SECONDS
    last_error = None
    while time.monotonic() < until:
        for name, child in children:
            assert child.poll() is None, f"{name} has ended"
        try:
            found = holds()
            if found:
                return found
        except (urllib.error.URLError, OSError, ValueError, KeyError) as error:
            last_error = error
        time.sleep(0.5)
    raise AssertionError(f"not in time: {what} ({last_error})")


def start(name, *line):
    with open(PLACE / f"{name}.log", "wb") as log:
        child = subprocess.Popen(line, cwd=PLACE, stdout=log, stderr=log)
    children.append((name, child))
    return child


def log_of(name):
    return (PLACE / f"{name}.log").read_text(errors="replace")


class Mount:
    """A mount with a second level and all metrics, under a load of reads."""

    def __init__(self, *further):
        self.port = free_port()
        self.source, self.point = PLACE / "source", PLACE / "mount"
        for directory in (self.source, self.point):
            directory.mkdir()
        # More than memory can cache, so that reads come from the second level.
        for number in range(6):
            (self.source / f"file{number}").write_bytes(os.urandom(4 << 20))
        subprocess.run(
            [OGIVE, "mount", "--direct-io", "--arc-max", "8M", "--l2", f"{PLACE}/l2",
             "--l2-size=64M", f"--metrics=127.0.0.1:{self.port}", "--pprof", *further,
             self.source, self.point], check=True)
        self.is_read = True
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while self.is_read:
            for number in range(6):
                (self.point / f"file{number}").read_bytes()
            # The second level soon has all of these files. A new one keeps reads of the source
            # coming, for rates over half a minute.
            (self.source / "fresh").write_bytes(os.urandom(1 << 20))
            (self.point / "fresh").read_bytes()
            time.sleep(0.2)

    def unmount(self):
        self.is_read = False
        time.sleep(1)
        subprocess.run([OGIVE, "unmount", self.point], check=True)

    def names(self):
        """Names of the metrics of the mount."""
        text = get(f"http://127.0.0.1:{self.port}/metrics")
        return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}


def prometheus_has_data_for_every_panel_and_rule(mount):
    directory = PLACE / "prometheus"
    directory.mkdir()
    values = prometheus(mount, directory)
    assert values("ogive_origin_read_duration_seconds_bucket")


def prometheus(mount, place):
    (place / "ogive.rules.yml").write_text((DIST / "prometheus/ogive.rules.yml").read_text())
    model = (DIST / "prometheus/prometheus.yml").read_text()
    assert "127.0.0.1:9135" in model and ": 15s" in model
    config = model.replace("9135", str(mount.port)).replace(": 15s", ": 1s")
    (place / "prometheus.yml").write_text(config)
    port = free_port()
    start(f"prometheus-{place.name}", "prometheus", f"--config.file={place}/prometheus.yml",
          f"--storage.tsdb.path={place}/data", f"--web.listen-address=127.0.0.1:{port}")
    base = f"http://127.0.0.1:{port}/api/v1"

    def values(expression):
        answer = json.loads(get(f"{base}/query", query=expression))
        assert answer["status"] == "success", answer
        return [float(one["value"][1]) for one in answer["data"]["result"]]

    eventually("a scrape", lambda: values("up") == [1.0])
    dashboard = json.loads((DIST / "grafana/ogive.json").read_text())
    count = 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            plain = target["expr"].replace("$__rate_interval", "30s")
            plain = re.sub(r"\$(job|instance|mount)\b", ".*", plain)
            found = eventually(f"{panel['title']}: {plain}", lambda: [
                value for value in values(plain) if math.isfinite(value)])
            assert found, plain
            count += 1
    # The queries of the variables at the top of the dashboard.
    choosers = [one["query"]["query"] for one in dashboard["templating"]["list"]
                if one["type"] == "query"]
    for chooser in choosers:
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", chooser).groups()
        series = re.sub(r"\$(job|instance|mount)\b", ".*", series)
        answer = json.loads(get(f"{base}/label/{label}/values", **{"match[]": series}))
        assert answer["data"], chooser
    print(f"ok: {count} expressions of panels and {len(choosers)} variables have data")

    def rules():
        groups = json.loads(get(f"{base}/rules"))["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    eventually("all rules were evaluated", lambda: rules() and all(
        rule["health"] != "unknown" for rule in rules()))
    for rule in rules():
        assert rule["health"] == "ok", rule
    recorded = [rule["name"] for rule in rules() if rule["type"] == "recording"]
    for name in recorded:
        eventually(name, lambda name=name: values(name))
    firing = [rule["name"] for rule in rules() if rule.get("state") == "firing"]
    assert firing == [], f"a healthy mount has alerts: {firing}"
    print(f"ok: {len(rules())} rules are evaluated, {len(recorded)} recorded figures have data")
    return values


def the_collector_receives_the_counters(mount):
    # Detailed lines: "     -> Name: ogive_read_bytes".
    def received():
        return set(re.findall(r"-> Name: (\S+)", log_of("collector")))

    eventually("counters at the collector", lambda: "ogive_read_bytes" in received())
    text = log_of("collector")
    for attribute in ("service.name: Str(ogive)", "service.instance.id: ", "host.name: "):
        assert attribute in text, f"no {attribute}: {text[:2000]}"
    assert f"mount: Str({mount.point})" in text
    own = {re.sub("_total$", "", name) for name in mount.names()}
    own = {name for name in own if name.startswith("ogive_")}
    missing = own - received()
    assert not missing, f"Prometheus has {sorted(missing)}, the collector has not"
    print(f"ok: the collector has all {len(own)} metrics that Prometheus has")


def parca_has_functions_of_the_last_minutes(mount):
    model = (DIST / "parca/parca.yml").read_text()
    assert "127.0.0.1:9135" in model and "scrape_interval: 10s" in model
    config = model.replace("9135", str(mount.port)).replace("interval: 10s", "interval: 3s")
    (PLACE / "parca.yml").write_text(config)
    port = free_port()
    # Without network: no symbols from debuginfod servers, and no sharing of profiles.
    start("parca", PARCA, "--config-path=parca.yml", f"--http-address=127.0.0.1:{port}",
          "--debuginfod-upstream-servers=http://127.0.0.1:9",
          "--profile-share-server=127.0.0.1:9", f"--debuginfo-cache-dir={PLACE}/cache")
    base = f"http://127.0.0.1:{port}/api"

    def targets():
        found = json.loads(get(f"{base}/targets"))["targets"]["ogive"]["targets"]
        return [(one["url"], one["health"], one["lastError"]) for one in found]

    eventually("a good scrape", lambda: [one for one in targets() if one[1] == "HEALTH_GOOD"])
    assert len(targets()) == 1, f"Parca scrapes other profiles as well: {targets()}"

    def stamp(seconds):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))

    def functions():
        answer = json.loads(get(f"{base}/profiles/query", **{
            "mode": "MODE_MERGE", "report_type": "REPORT_TYPE_TOP",
            "merge.query": 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job="ogive"}',
            "merge.start": stamp(-600), "merge.end": stamp(60)}))
        return [row["meta"]["function"]["name"] for row in answer["top"]["list"]
                if row["meta"].get("function")]

    found = eventually("functions in the last ten minutes", functions)
    print(f"ok: Parca has {len(found)} functions, such as {found[0]}")


def main():
    mount = None
    try:
        further = []
        if OTELCOL:
            port = free_port()
            (PLACE / "collector.yml").write_text(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service:
  pipelines: {{metrics: {{receivers: [otlp], exporters: [debug]}}}}
  telemetry: {{metrics: {{level: none}}}}
""")
            start("collector", OTELCOL, "--config=file:collector.yml")
            further = [f"--otlp=http://127.0.0.1:{port}"]
        mount = Mount(*further)
        prometheus_has_data_for_every_panel_and_rule(mount)
        if OTELCOL:
            the_collector_receives_the_counters(mount)
        if PARCA:
            parca_has_functions_of_the_last_minutes(mount)
    except BaseException:
        for name, _ in children:
            print(f"-- end of the log of {name}:\n{log_of(name)[-2000:]}")
        raise
    finally:
        for _, child in children:
            child.terminate()
            child.wait()
        if mount:
            mount.unmount()


main()
