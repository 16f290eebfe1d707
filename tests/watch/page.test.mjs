// The page of ogive watch in a real browser, over real mounts: its data, mouse and keyboard,
// accessibility, and the requests that the server refuses.
//
// Needs root, /dev/fuse, OGIVE (the program) and CHROMIUM (the browser); run.sh checks for them. Waits
// end with their condition; their bound of minutes is generous.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const OGIVE = process.env.OGIVE;
const PATIENCE = { timeout: 90_000 };
/** A mount point whose name is a script, if a page does not escape it. */
const HOSTILE = '<img src=x onerror="document.title=1">';
const HOSTILE_FILE = "<i>file";
const AXE = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let place, mount, watch, link, address, token, browser, page, reading, sick;
const faults = [];
const requests = [];

function run(...args) {
  const done = spawnSync(OGIVE, args, { encoding: "utf8", timeout: 120_000 });
  assert.equal(done.status, 0, `ogive ${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

/** Starts a program, and waits for its first line. */
function started(args) {
  const child = spawn(OGIVE, args, { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (bytes) => {
      text += bytes;
      if (text.endsWith("\n")) resolve([child, text]);
    });
    child.on("exit", (code) => reject(new Error(`ogive ${args[0]} ended with ${code}: ${text}`)));
  });
}

function ended(child, signal) {
  if (!child || child.exitCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill(signal);
  });
}

before(async () => {
  place = fs.mkdtempSync(path.join(os.tmpdir(), "ogive-watch-page."));
  mount = path.join(place, HOSTILE);
  fs.mkdirSync(path.join(place, "source"));
  fs.mkdirSync(mount);
  for (let number = 0; number < 8; number += 1) {
    fs.writeFileSync(path.join(place, "source", `file${number}`), Buffer.alloc(4 << 20, number));
  }
  // With direct I/O, every read goes through ogive's cache and not the kernel's.
  run("mount", "--direct-io", "--arc-max", "64M", path.join(place, "source"), mount);
  [sick] = await started(["bench", "sick", "small-arc", "--json", "--for", "20m", "--dir", place]);
  let text;
  const week = path.join(place, "week");
  [watch, text] = await started(["watch", "--listen", "127.0.0.1:0", `--history=${week}`]);
  [address, token] = text.trim().split("/#token=");
  let turn = 0;
  reading = setInterval(() => {
    turn += 1;
    fs.readFile(path.join(mount, `file${turn % 8}`), () => {});
  }, 200);
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  page = await opened(`${address}/#token=${token}`);
  await page.waitForSelector("#host-cpu", PATIENCE);
});

after(async () => {
  clearInterval(reading);
  await browser?.close();
  await ended(watch, "SIGTERM");
  await ended(sick, "SIGINT");
  if (mount && fs.existsSync(mount)) run("unmount", mount);
  if (place) fs.rmSync(place, { recursive: true });
});

async function opened(url) {
  const made = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
  made.on("pageerror", (error) => faults.push(error.stack));
  made.on("console", (message) => {
    // Tests provoke refusals by the server, which the browser prints.
    if (message.type() === "error" && !/status of 4/.test(message.text())) faults.push(message.text());
  });
  made.on("request", (request) => requests.push(request.url()));
  await made.goto(url);
  return made;
}

/** The section of the mount whose name is a script. */
function section() {
  return page.locator("section", { has: page.locator("h2", { hasText: HOSTILE }) });
}

/** The prefix of the identifiers of this mount's charts. */
async function identifier() {
  return (await section().locator("h2").getAttribute("id")).replace("-title", "");
}

const shown = (value) => value.replace("#", "");

test("live data of a real mount arrives, and its name stays text", async () => {
  await section().waitFor(PATIENCE);
  assert.equal(await section().locator("h2").innerText(), path.join(place, HOSTILE));
  const lookups = section().locator("dl div", { hasText: "lookups" }).locator("dd");
  await page.waitForFunction(([node]) => /^[1-9]/.test(node.textContent),
    [await lookups.elementHandle()], PATIENCE);
  const latency = section().locator("dl div", { hasText: "latency of the source" }).locator("dd");
  assert.match(await latency.innerText(), /^(no requests lately|[\d.]+ (µs|ms|s) p99; p50 [\d.]+ (µs|ms|s)|– p99; p50 –)$/);
  assert.equal(await page.locator("main img").count(), 0);
  assert.notEqual(await page.title(), "1");
  assert.ok(!page.url().includes("token"), "the token leaves the address at once");
});

test("a drag zooms all charts together, and the address shows the same", async () => {
  await page.waitForFunction(() => document.querySelector("#host-cpu canvas").clientWidth > 0);
  // While the view is paused, a place on a chart is one moment.
  await page.locator("#pause").click();
  await page.waitForFunction(() => location.hash.includes("paused="));
  const paused = new URLSearchParams(new URL(page.url()).hash.slice(1));
  const axis = await page.evaluate(async () => (await import("/chart.js")).AXIS);
  const box = await page.locator("#host-cpu canvas").boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(() => /from=\d+&to=\d+/.test(location.hash));
  await page.waitForFunction(() => document.getElementById("live").textContent === "paused");
  const zoomed = new URLSearchParams(new URL(page.url()).hash.slice(1));
  const pixel = 60_000 / (box.width - axis);
  const begins = Number(paused.get("paused")) - 60_000 + (box.width * 0.6 - axis) * pixel;
  const [from, to] = [Number(zoomed.get("from")), Number(zoomed.get("to"))];
  assert.ok(Math.abs(from - begins) < 2 * pixel, `it begins ${from - begins} ms from the drag`);
  assert.ok(Math.abs(to - from - box.width * 0.3 * pixel) < 2 * pixel, `${to - from} ms wide`);
  const other = await opened(`${address}/${new URL(page.url()).hash}&token=${token}`);
  await other.waitForSelector("#host-cpu", PATIENCE);
  assert.equal(new URL(other.url()).hash, new URL(page.url()).hash);
  assert.equal(await other.locator("#live").innerText(), "paused");
  await other.close();
  await page.locator("#pause").click();
  await page.waitForFunction(() => !location.hash.includes("from"));
});

test("everything works by keyboard, and is read out", async () => {
  const canvas = page.locator("#host-memory canvas");
  await canvas.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() =>
    /programs [\d.]+ [KMGT]iB/.test(document.querySelector("#host-memory canvas").ariaLabel),
  null, PATIENCE);
  await page.keyboard.press("+");
  await page.waitForFunction(() => location.hash.includes("from="));
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("from="));
  await page.keyboard.press(" ");
  await page.waitForFunction(() => location.hash.includes("paused="));
  await page.keyboard.press(" ");
  await page.locator("#host-memory summary").focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("#host-memory tbody tr", PATIENCE);
  await page.keyboard.press("Enter");
});

test("the cache panel shows files by bytes and by reads, and their names stay text", async () => {
  await page.locator("#panels a[data-panel=cache]").click();
  const chooser = page.locator("#cache select");
  const own = await chooser.locator("option", { hasText: HOSTILE }).getAttribute("value", PATIENCE);
  await chooser.selectOption(own);
  const statusHas = (words) => page.waitForFunction((text) => new RegExp(text).test(
    document.querySelector("#cache [role=status]").textContent), words, PATIENCE);
  await statusHas("counted from now on|of about");
  // While the panel is open, the page counts reads, here of a file that changes each time.
  let turn = 0;
  const changing = setInterval(() => {
    turn += 1;
    fs.writeFileSync(path.join(place, "source", HOSTILE_FILE), `small ${turn}`);
    fs.readFile(path.join(mount, HOSTILE_FILE), () => {});
  }, 500);
  try {
    const files = page.locator("#cache .objects", { hasText: "Files" });
    const row = files.locator("tbody tr", { hasText: HOSTILE_FILE });
    await row.waitFor(PATIENCE);
    assert.equal(await row.locator("th").innerText(), `/${HOSTILE_FILE}`);
    assert.equal(await page.locator("#cache i").count(), 0);
    await statusHas("of about \\d+ (seconds|minutes)");
    await files.getByRole("button", { name: "Reads" }).focus();
    await page.keyboard.press("Enter");
    assert.equal(await files.locator("th[aria-sort=descending]").innerText(), "Reads");
    await page.waitForFunction((name) => [...document.querySelectorAll("#cache .objects tbody tr")]
      .some((one) => one.children[0].textContent === name && /^[1-9]/.test(one.children[4].textContent)),
    `/${HOSTILE_FILE}`, PATIENCE);
  } finally {
    clearInterval(changing);
  }
});

test("the cache panel shows the gain of more memory", async () => {
  await page.locator("#panels a[data-panel=cache]").click();
  const part = page.locator("#cache .memory");
  await part.locator("svg.curve").waitFor(PATIENCE);
  // Eight files of 4 MiB are read in turn, and the cache of 64 MiB holds all of them.
  assert.match(await part.locator(".verdict").innerText(),
    /^(More memory would hardly help: hits \d+ % now|With [\d.]+ [KMG]iB more: hits \d+ % → \d+ %)/);
  assert.equal(await part.locator("tbody tr").count(), 6);
  assert.match(await part.locator("svg").getAttribute("aria-label"), /64 MiB \d+ %/);
});

test("the doctor finds a known problem, and links it to its chart", async () => {
  await page.locator("#panels a[data-panel=doctor]").click();
  const chooser = page.locator("#doctor select");
  // The mount of this test; the host may have others.
  const sickPath = path.join(place, "ogive-bench-sick");
  const sickMount = await chooser.locator("option", { hasText: sickPath })
    .getAttribute("value", PATIENCE);
  await chooser.selectOption(sickMount);
  const cause = page.locator('[data-cause="ogive-arc-too-small"]');
  // A load that has just begun may look like another one, so the doctor may try again.
  for (let look = 0; look < 3 && !(await cause.count()); look += 1) {
    await page.getByRole("button", { name: /^Look/ }).click();
    await page.waitForFunction((count) =>
      document.querySelectorAll(".log li").length > count, look, PATIENCE);
  }
  assert.equal(await cause.count(), 1, await page.locator("#doctor .answer").innerText());
  await cause.getByRole("button", { name: "show the chart" }).first().click();
  await page.waitForSelector(".chart.marked canvas:focus", PATIENCE);
});

test("the doctor reports that there is no hour yet to compare with", async () => {
  await page.locator("#panels a[data-panel=doctor]").click();
  const status = page.locator("#doctor [role=status]");
  // The page needs a minute of steps first; on a busy machine that takes a while.
  for (let turn = 0; turn < 90 && !/no hour yet/.test(await status.innerText()); turn += 1) {
    await page.getByRole("button", { name: "Compare with an hour ago" }).click();
    await page.waitForTimeout(1000);
  }
  assert.match(await status.innerText(), /there is no hour yet: steps begin \d+ minutes ago/);
});

test("the difference from an hour ago is a sentence and two tables, and names stay text", async () => {
  // Instead of an hour's wait, the answer is a comparison of two captures, in the same format.
  const captures = ["then", "now"].map((name) => path.join(place, `${name}.tar.zst`));
  captures.forEach((file) => run("capture", "--for", "1s", "--output", file));
  const compared = spawnSync(OGIVE, ["doctor", "--compare", ...captures, "--json"],
    { encoding: "utf8", timeout: 120_000 });
  const answer = JSON.parse(compared.stdout);
  answer.roles = [["<i>request</i>", 1.5, 99]];
  answer.differences.unshift({ kind: "setting", name: "<b>arc_max</b>", healthy: "1", sick: "2" });
  await page.route("**/api/compare*", (route) => route.fulfill({ json: answer }));
  await page.getByRole("button", { name: "Compare with an hour ago" }).click();
  const rows = (name) => page.getByRole("region", { name }).locator("tbody tr");
  await rows("CPU by role of threads, of one CPU").first().waitFor(PATIENCE);
  await page.unroute("**/api/compare*");
  const text = (locator) => locator.evaluate((row) => [...row.cells].map((cell) => cell.textContent));
  assert.deepEqual(await text(rows("CPU by role of threads, of one CPU").first()),
    ["<i>request</i>", "1.5 %", "99.0 %"]);
  assert.deepEqual(await text(rows("Differences").first()),
    ["setting <b>arc_max</b>", "1", "2", ""]);
  const sentence = await page.locator("#doctor .verdict").innerText();
  assert.equal(sentence.slice(1), answer.sentence.slice(1));
});

test("one click samples a flame graph, which can be zoomed and saved", async (t) => {
  await page.locator("#panels a[data-panel=flame]").click();
  await page.getByRole("button", { name: /^Sample/ }).click();
  const status = page.locator("#flame [role=status]");
  await page.waitForFunction(() => document.querySelector("#flame iframe:not([hidden])")
    || /kernel does not let/.test(document.querySelector("#flame [role=status]").textContent),
  null, PATIENCE);
  if (/kernel does not let/.test(await status.innerText())) return t.skip(await status.innerText());
  const frame = page.frameLocator("#flame iframe");
  const graph = frame.locator(".graph");
  await graph.waitFor(PATIENCE);
  const bars = (await graph.boundingBox());
  await graph.click({ position: { x: bars.width * 0.5, y: 28 } });
  await frame.getByRole("button", { name: "reset" }).click();
  assert.equal(await page.locator("#flame iframe").getAttribute("sandbox"), "allow-scripts");
  const link = await page.locator("#flame .files a").first().getAttribute("href");
  const svg = await fetch(address + link);
  assert.match(svg.headers.get("content-disposition"), /attachment; filename="flame\.svg"/);
  assert.match(await svg.text(), /<svg/);
});

test("axe finds no serious fault, in light and dark, wide and narrow", async () => {
  await page.locator("#panels a[data-panel=overview]").click();
  await page.evaluate(AXE);
  for (const [panel, scheme, width] of [["overview", "light", 1280], ["overview", "dark", 390],
    ["cache", "light", 1280], ["cache", "dark", 390], ["doctor", "dark", 1280],
    ["flame", "light", 390]]) {
    await page.locator(`#panels a[data-panel=${panel}]`).click();
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    const found = await page.evaluate(() => globalThis.axe.run({ iframes: false }));
    const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
    assert.deepEqual(serious.map((one) => [one.id, one.nodes[0].html]), [], `${panel} ${scheme}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${panel} is ${wide} wide in a window of ${width}`);
  }
});

test("the week is shown, zoomed and linked to, and survives kill -9", async () => {
  await page.locator("#panels a[data-panel=overview]").click();
  const weekData = async () => (await fetch(`${address}/api/week?from=0&to=${Date.now()}&points=99`,
    { headers: { Authorization: `Bearer ${token}` } })).json();
  // A minute appears when it is over. A minute with only one value has no minimum and maximum.
  const hasSpread = ({ series }) => Boolean(series["host.cpu_usr"]?.max);
  for (let turn = 0; turn < 300 && !hasSpread(await weekData()); turn += 1) {
    await page.waitForTimeout(500);
  }
  const before = await weekData();
  assert.ok(hasSpread(before), "no minute has two values");
  const hits = `${await identifier()}.demand_data_hits`;
  assert.ok(before.series[hits], `${Object.keys(before.series)}`);
  await page.locator("#ranges button[data-seconds='604800']").click();
  await page.waitForFunction(() => location.hash.includes("range=604800"));
  // A step of the week has a minimum and a maximum.
  await page.waitForFunction(() =>
    /user [\d.]+ %.* to /.test(document.querySelector("#host-cpu canvas").ariaLabel), null, PATIENCE);
  const other = await opened(`${address}/${new URL(page.url()).hash}&token=${token}`);
  await other.waitForSelector("#host-cpu .spread:not(:empty)", PATIENCE);
  assert.equal(new URL(other.url()).hash, new URL(page.url()).hash);
  await other.close();
  await page.locator("#ranges button[data-seconds='60']").click();

  await page.goto("about:blank");
  const { port } = new URL(address);
  await ended(watch, "SIGKILL");
  [watch, link] = await started(["watch", "--listen", `127.0.0.1:${port}`,
    `--history=${path.join(place, "week")}`]);
  token = link.trim().split("/#token=")[1];
  const after = await weekData();
  assert.deepEqual(after.times.slice(0, before.times.length - 1), before.times.slice(0, -1));
  assert.ok(after.times.length >= before.times.length, "finished minutes are still there");
  assert.ok(after.series[hits], "the mount has the same name");
  await page.goto(`${address}/#token=${token}`);
  await section().waitFor(PATIENCE);
  assert.equal(await section().locator("h2").getAttribute("id"), `${hits.split(".")[0]}-title`);
});

/** Sends a request as raw bytes, because a browser would not send some of these. */
function raw(text) {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname, () => socket.end(text.replaceAll("\n", "\r\n")));
    let answer = "";
    socket.on("data", (bytes) => { answer += bytes; });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
}

test("foreign requests are refused", async () => {
  const host = new URL(address).host;
  const bearer = `Authorization: Bearer ${token}`;
  const profiles = async () => (await fetch(`${address}/api/profiles`,
    { headers: { Authorization: `Bearer ${token}` } })).json();
  const before = (await profiles()).length;
  for (const [request, status] of [
    [`GET / HTTP/1.1\nHost: rebound.example\n\n`, 421],
    [`GET /api/steps HTTP/1.1\nHost: rebound.example:80\n\n`, 421],
    [`POST /api/profile?seconds=1 HTTP/1.1\nHost: ${host}\n${bearer}\nOrigin: http://evil.example\n\n`, 403],
    [`POST /api/profile?seconds=1 HTTP/1.1\nHost: ${host}\n\n`, 401],
    [`POST /api/capture HTTP/1.1\nHost: ${host}\nAuthorization: Bearer ${"0".repeat(32)}\n\n`, 401],
    [`GET /api/profile HTTP/1.1\nHost: ${host}\n${bearer}\n\n`, 405],
    [`GET /../../etc/passwd HTTP/1.1\nHost: ${host}\n\n`, 404],
    [`GET /%2e%2e%2fetc%2fpasswd HTTP/1.1\nHost: ${host}\n\n`, 404],
    [`POST /api/diagnose?source=../../etc HTTP/1.1\nHost: ${host}\n${bearer}\n\n`, 404],
    [`GET /flame?id=${"0".repeat(32)} HTTP/1.1\nHost: ${host}\n\n`, 404],
  ]) {
    const answer = await raw(request);
    assert.equal(Number(answer.split(" ")[1]), status, `${request}: ${answer.slice(0, 200)}`);
  }
  // Another site's page in the same browser, without and with headers that need CORS.
  const evil = http.createServer((_, answer) => answer.end("<!doctype html><title>evil</title>"));
  await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
  const foreign = await browser.newPage();
  await foreign.goto(`http://localhost:${evil.address().port}/`);
  const outcomes = await foreign.evaluate(async ([to, secret]) => {
    const attempt = (options) => fetch(`${to}/api/profile?seconds=1`, { method: "POST", ...options })
      .then((answer) => answer.type, () => "refused");
    const steps = await fetch(`${to}/api/steps`).then((answer) => answer.text(), () => "refused");
    return [await attempt({ mode: "no-cors" }),
      await attempt({ headers: { Authorization: `Bearer ${secret}` } }), steps];
  }, [address, token]);
  assert.equal(outcomes[1], "refused");
  assert.equal(outcomes[2], "refused");
  await foreign.close();
  await new Promise((resolve) => evil.close(resolve));
  assert.equal((await profiles()).length, before, "no foreign request took a sample");
});

test("the page sent no request to another host, and had no fault", async () => {
  const outside = requests.filter((url) => !url.startsWith(address) && !url.startsWith("data:")
    && !url.startsWith("blob:"));
  assert.deepEqual(outside, []);
  assert.deepEqual(faults.map(shown), []);
  const parts = await page.evaluate(() => performance.getEntriesByType("resource")
    .filter((entry) => !/\/(api\/|flame\?)/.test(entry.name)).reduce((sum, entry) => sum + entry.encodedBodySize, 0));
  assert.ok(parts > 0 && parts < 300 << 10, `${parts} bytes`);
  console.log(`# the page's files: ${parts} bytes compressed`);
});
