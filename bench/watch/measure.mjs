// Measures for run.sh: CPU by the kernel's clock of a process, wake-ups by the context switches of
// each thread (/proc/PID/task), bytes received by the browser, and its first paint.
//
// Meanwhile programs read a file a few times a second, so that the charts have values.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const { OGIVE, CHROMIUM, PERF } = process.env;
const SECONDS = Number(process.argv[2]);
/** Time for the first steps, and for a measurement that goes on for some seconds. */
const SETTLE = 8;

const place = fs.mkdtempSync(path.join(os.tmpdir(), "ogive-watch-bench."));
const mount = path.join(place, "mount");
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

function run(...args) {
  const done = spawnSync(OGIVE, args, { encoding: "utf8", timeout: 120_000 });
  if (done.status !== 0) throw new Error(`ogive ${args.join(" ")}: ${done.stderr}`);
}

function watched(...args) {
  const child = spawn(OGIVE, ["watch", "--listen", "127.0.0.1:0", mount, ...args],
    { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    child.stdout.once("data", (bytes) => resolve([child, String(bytes).trim()]));
    child.once("exit", (code) => reject(new Error(`ogive watch ended with ${code}`)));
  });
}

/** Nanoseconds of CPU of a process, including its ended threads, by the kernel's clock. */
const CLOCK = "import sys, time; print(int(time.clock_gettime((~int(sys.argv[1]) << 3) | 2) * 1e9))";

/** CPU and context switches of a process's live threads. */
function used(pid) {
  const cpu = Number(spawnSync("python3", ["-c", CLOCK, pid], { encoding: "utf8" }).stdout);
  let switches = 0;
  for (const thread of fs.readdirSync(`/proc/${pid}/task`)) {
    try {
      const status = fs.readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
      for (const [, count] of status.matchAll(/ctxt_switches:\t(\d+)/g)) switches += Number(count);
    } catch {
      // The thread has ended meanwhile.
    }
  }
  return { cpu, switches };
}

/** The use of these processes over a time: percent of one CPU, and switches a second. */
async function measured(pids, seconds) {
  const [begun, before] = [performance.now(), pids.map(used)];
  await sleep(seconds);
  const passed = (performance.now() - begun) / 1000;
  return pids.map(used).map((now, at) => ({
    percent: (now.cpu - before[at].cpu) / 1e7 / passed,
    switches: (now.switches - before[at].switches) / passed,
  }));
}

const rows = [];

async function row(name, pids, seconds = SECONDS) {
  const [watch, daemon] = await measured(pids, seconds);
  rows.push(`| ${name} | ${watch.percent.toFixed(3)}% | ${watch.switches.toFixed(2)} |`
    + ` ${daemon.percent.toFixed(3)}% |`);
  console.error(rows.at(-1));
}

/** Bytes that a page has received since the last call, with header fields. */
function counted(page) {
  let bytes = 0;
  page.on("requestfinished", async (request) => {
    const sizes = await request.sizes().catch(() => null);
    if (sizes) bytes += sizes.responseHeadersSize + sizes.responseBodySize;
  });
  return () => {
    const since = bytes;
    bytes = 0;
    return since;
  };
}

const paint = (page) => page.waitForFunction(() =>
  performance.getEntriesByName("first-contentful-paint")[0]?.startTime).then((handle) =>
  handle.jsonValue());

fs.mkdirSync(path.join(place, "source"));
fs.mkdirSync(mount);
for (let number = 0; number < 8; number += 1) {
  fs.writeFileSync(path.join(place, "source", `file${number}`), Buffer.alloc(4 << 20, number));
}
run("mount", "--direct-io", "--arc-max", "64M", path.join(place, "source"), mount);
const daemon = JSON.parse(fs.readFileSync(path.join(mount, ".ogive/mount"))).pid;
let turn = 0;
const reading = setInterval(() => fs.readFile(path.join(mount, `file${(turn += 1) % 8}`), () => {}), 500);
let watch, link, browser;
const notes = [];
try {
  [watch, link] = await watched();
  const pids = () => [watch.pid, daemon];
  await sleep(2);
  await row("no page yet", pids());

  browser = await chromium.launch({ executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 1000 } });
  const page = await context.newPage();
  const received = counted(page);
  await page.goto(link);
  const first = await paint(page);
  await page.waitForSelector("#host-cpu");
  const loaded = received();
  const files = await page.evaluate(() => [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource").filter((entry) => !entry.name.includes("/api/"))]
    .reduce((sum, entry) => sum + entry.encodedBodySize, 0));
  await page.reload();
  const again = await paint(page);
  await sleep(SETTLE);

  const perf = PERF && spawn("perf", ["record", "-q", "-F", "4999", "-g", "-p", watch.pid, "-o", PERF],
    { stdio: "inherit" });
  received();
  await row("a page open: overview", pids());
  const second = received() / SECONDS;
  if (perf) {
    perf.kill("SIGINT");
    await new Promise((resolve) => perf.once("exit", resolve));
  }
  await page.locator("#panels a[data-panel=cache]").click();
  await sleep(SETTLE);
  received();
  await row("a page open: cache", pids());
  const cache = received() / SECONDS;
  await page.close();
  await sleep(30 + SETTLE);
  await row("the page closed again", pids());
  notes.push(`page and scripts, compressed: ${files} bytes; loading with header fields: ${loaded} bytes`,
    `bytes a second: overview ${second.toFixed(0)}, cache ${cache.toFixed(0)}`,
    `first paint: ${first.toFixed(0)} ms, loaded again ${again.toFixed(0)} ms`);

  watch.removeAllListeners("exit");
  watch.kill();
  const week = path.join(place, "week");
  [watch] = await watched(`--history=${week}`);
  await sleep(2);
  await row("no page, with --history", pids(), Math.max(SECONDS, 60));
} finally {
  clearInterval(reading);
  await browser?.close();
  watch?.removeAllListeners("exit");
  watch?.kill();
  await sleep(1);
  run("unmount", mount);
  fs.rmSync(place, { recursive: true });
}

const threads = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  .reduce((sum, pid) => {
    try {
      return sum + fs.readdirSync(`/proc/${pid}/task`).length;
    } catch {
      return sum;
    }
  }, 0);
console.log(`${os.cpus().length} CPUs (${os.cpus()[0].model.trim()}), Linux ${os.release()},`
  + ` ${threads} threads, load ${os.loadavg().map((load) => load.toFixed(1)).join(" ")};`
  + ` ${SECONDS} s each\n`);
console.log("| | ogive watch, of one CPU | its switches a second | the mount's daemon |\n|---|---|---|---|");
console.log(rows.join("\n"));
console.log(`\n${notes.join("\n")}`);
