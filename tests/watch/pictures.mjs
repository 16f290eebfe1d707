// Takes the pictures of docs/watch.md, of a real mount with a real load: PICTURES=docs/pictures run.sh.
//
// After a change of the page's appearance, take them again and check them.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const { OGIVE, CHROMIUM, PICTURES } = process.env;
/** Files by their popularity, the most popular first. */
const FILES = [...Array(8).keys()].map((n) => `models/part-${n}.bin`)
  .concat([...Array(10).keys()].map((n) => `tables/orders.${n}.parquet`))
  .concat([...Array(6).keys()].map((n) => `logs/2026-11-${n + 10}.log`));
const FILE_BYTES = 6 << 20;
/** The overview shows five minutes, so the load must change often. */
const LOADED = 150_000;

const place = fs.mkdtempSync(path.join(os.tmpdir(), "ogive-watch-pictures."));
const source = path.join(place, "data");
const mount = path.join(place, "fast");
const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));

function run(...args) {
  const done = spawnSync(OGIVE, args, { encoding: "utf8", timeout: 120_000 });
  if (done.status !== 0) throw new Error(`ogive ${args.join(" ")}: ${done.stderr}`);
}

function watched() {
  const args = ["watch", "--listen", "127.0.0.1:0", mount];
  const child = spawn(OGIVE, args, { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    child.stdout.once("data", (bytes) => resolve([child, String(bytes).trim()]));
    child.on("exit", (code) => reject(new Error(`ogive watch ended with ${code}`)));
  });
}

/** Reads a megabyte of a file, popular ones more often. */
function read() {
  const file = FILES[Math.floor(FILES.length * Math.random() ** 2.2)];
  fs.open(path.join(mount, file), (error, handle) => {
    if (error) return;
    const from = Math.floor(Math.random() * (FILE_BYTES >> 20)) << 20;
    fs.read(handle, Buffer.alloc(1 << 20), 0, 1 << 20, from, () => fs.close(handle, () => {}));
  });
}

fs.mkdirSync(mount);
for (const file of FILES) {
  fs.mkdirSync(path.join(source, path.dirname(file)), { recursive: true });
  fs.writeFileSync(path.join(source, file), Buffer.alloc(FILE_BYTES, file));
}
run("mount", "--direct-io", "--arc-max", "64M", source, mount);
const [watch, link] = await watched();
const reading = setInterval(read, 40);
const browser = await chromium.launch({ executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1240 } });
  const picture = async (name, scheme, width, height) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height });
    await page.mouse.move(0, 0);
    await sleep(2500);
    await page.screenshot({ path: path.join(PICTURES, `${name}.png`) });
  };
  const panel = (name) => page.locator(`#panels a[data-panel=${name}]`).click();
  await page.goto(link);
  await panel("cache");
  await sleep(LOADED);
  await page.locator("#cache .memory svg").waitFor();
  await picture("watch-cache", "light", 1280, 1000);
  await panel("overview");
  await page.locator("#ranges button[data-seconds='300']").click();
  await picture("watch-light", "light", 1280, 1240);
  await picture("watch-dark", "dark", 1280, 1240);
  await picture("watch-narrow", "light", 390, 1240);
  await panel("flame");
  const chooser = page.locator("#flame select").first();
  await chooser.selectOption(await chooser.locator("option", { hasText: mount }).getAttribute("value"));
  await page.getByRole("button", { name: /^Sample/ }).click();
  await page.locator("#flame iframe:not([hidden])").waitFor({ timeout: 120_000 });
  await picture("watch-flame", "light", 1280, 1000);
} finally {
  clearInterval(reading);
  await browser.close();
  watch.removeAllListeners("exit");
  watch.kill();
  await sleep(1000);
  run("unmount", mount);
  fs.rmSync(place, { recursive: true });
}
