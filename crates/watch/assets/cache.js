// The cache of a mount: its contents by directory and file with their reads, the miss-ratio curve,
// and the wear of the second level. The panel polls while it is open; the mount counts reads by file,
// and samples them, only meanwhile.

import { element } from "/chart.js";
import { Curve } from "/curve.js";
import * as data from "/data.js";
import { format } from "/format.js";
import { view } from "/view.js";

const AGAIN = 5000;
const SECONDS_A_DAY = 86400;

/** Columns of both tables: the value, the heading, and the unit. */
const COLUMNS = [
  ["bytes", "Bytes", "bytes"],
  ["mru_bytes", "in MRU", "bytes"],
  ["mfu_bytes", "in MFU", "bytes"],
  ["reads", "Reads", "count"],
  ["hit_percent", "Hits", "percent"],
  ["misses", "Misses", "count"],
  ["origin_bytes", "From the source", "bytes"],
];

const percent = (row) => row.reads > 0 ? 100 * row.hits / row.reads : NaN;

/** A table whose head sorts it. */
class Table {
  constructor(title) {
    this.by = "bytes";
    this.rows = [];
    this.body = element("tbody");
    this.heads = COLUMNS.map(([name, label]) => element("th", { scope: "col" },
      element("button", { type: "button", class: "link", onclick: () => this.sort(name) }, label)));
    this.root = element("div", { class: "objects" },
      element("table", {}, element("caption", {}, title),
        element("thead", {},
          element("tr", {}, element("th", { scope: "col" }, "Path"), ...this.heads)),
        this.body));
    this.sort("bytes");
  }

  sort(name) {
    this.by = name;
    COLUMNS.forEach(([own], at) => {
      this.heads[at].setAttribute("aria-sort", own === name ? "descending" : "none");
    });
    this.show(this.rows);
  }

  show(rows) {
    this.rows = rows;
    // A row without reads has no share of hits, and comes last.
    const value = (row) => Number.isFinite(row[this.by]) ? row[this.by] : -1;
    const sorted = [...rows].sort((a, b) => value(b) - value(a));
    this.body.replaceChildren(...sorted.map((row) => element("tr", {},
      element("th", { scope: "row" }, row.path),
      ...COLUMNS.map(([name, , unit]) => element("td", {}, format(row[name], unit))))));
  }
}

/** The writes of the second level, with their limits, as figures. */
export function wear(source) {
  const level = source.mount?.second_level;
  const values = (data.series.get(`${source.id}.l2_write_bytes`) ?? [])
    .filter((value) => !Number.isNaN(value));
  if (!level || !values.length) return [];
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const rows = [
    ["on the devices", format(data.last(`${source.id}.l2_bytes`), "bytes"), ""],
    ["written", format(mean, "bytes/s"), "mean of the steps that this page has"],
  ];
  if (level.size_bytes > 0) {
    const daily = mean * SECONDS_A_DAY / (level.size_bytes * (level.devices?.length || 1));
    const most = level.drive_writes_per_day;
    rows.push(["drive writes a day", daily.toFixed(2),
      most ? `at this rate, of at most ${most} after the first fill`
        : "at this rate; no budget was set (--l2-dwpd)"]);
  }
  if (level.write_max_bytes_per_second) {
    rows.push(["write limit", format(level.write_max_bytes_per_second, "bytes/s"), "on each device"]);
  }
  return rows;
}

function figures(rows) {
  return element("dl", { class: "figures" }, ...rows.map(([name, value, note]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value, " ",
      element("small", {}, note)))));
}

export class Cache {
  constructor(root) {
    this.asked = -Infinity;
    this.busy = false;
    this.source = element("select", { "aria-label": "Which cache", onchange: () => this.change() });
    this.status = element("p", { role: "status", class: "quiet" });
    this.sums = element("div");
    this.level = element("div");
    this.directories = new Table("Directories, including everything below them");
    this.files = new Table("Files");
    this.tables = element("div", { hidden: true }, this.directories.root, this.files.root);
    this.empty = element("div", { class: "empty" });
    this.curve = new Curve();
    root.append(element("section", { "aria-labelledby": "cache-title" },
      element("header", {}, element("h2", { id: "cache-title" }, "Cache")),
      element("div", { class: "controls" }, this.source), this.status, this.sums, this.curve.root,
      this.empty, this.tables, this.level));
    setInterval(() => this.draw(), 1000);
  }

  /** Shows another mount; the figures of the previous one go. */
  change() {
    this.asked = -Infinity;
    this.clear();
    this.empty.hidden = true;
    this.draw();
  }

  /** Removes all figures. */
  clear() {
    this.curve.clear();
    this.tables.hidden = true;
    this.status.textContent = "";
    this.sums.replaceChildren();
  }

  draw() {
    if (view.panel !== "cache" || document.hidden) return;
    const mounts = data.sources.filter((source) => source.kind === "mount");
    const ids = mounts.map((source) => source.id).join();
    if (this.source.dataset.shown !== ids) {
      const chosen = this.source.value;
      this.source.replaceChildren(...mounts.map((source) =>
        element("option", { value: source.id }, source.name)));
      if (mounts.some((source) => source.id === chosen)) this.source.value = chosen;
      else if (chosen) this.clear();
      this.source.dataset.shown = ids;
    }
    this.source.hidden = !mounts.length;
    const source = mounts.find((one) => one.id === this.source.value);
    if (!source) {
      this.clear();
      this.level.replaceChildren();
      delete this.level.dataset.shown;
      this.say("No mount of ogive", `This panel shows the files in the cache of an ogive mount. Mount a
        directory with “ogive mount SRC MNT”, and it appears here.`);
      return;
    }
    this.drawLevel(source);
    if (!this.busy && performance.now() - this.asked > AGAIN) this.ask(source);
  }

  /** Shows a text in the place of the tables. */
  say(title, text) {
    this.tables.hidden = true;
    this.empty.hidden = false;
    if (this.empty.dataset.shown === title + text) return;
    this.empty.dataset.shown = title + text;
    this.empty.replaceChildren(element("h3", {}, title), element("p", {}, text));
  }

  drawLevel(source) {
    const rows = wear(source);
    const text = JSON.stringify(rows);
    if (this.level.dataset.shown === text) return;
    this.level.dataset.shown = text;
    this.level.replaceChildren(...rows.length
      ? [element("h3", {}, "Second level: wear"), figures(rows)] : []);
  }

  async ask(source) {
    this.busy = true;
    try {
      const answer = await data.ask(`/api/objects?source=${encodeURIComponent(source.id)}`);
      const objects = await answer.json();
      const showCurve = await this.curve.ask(source);
      if (this.source.value === source.id) {
        this.show(objects, source);
        showCurve();
      }
    } catch (error) {
      // 409: another page reads this cache. The shown figures stay until the next answer.
      if (error.status !== 409 && this.source.value === source.id) {
        this.clear();
        this.say("Nothing to show", error.message || "no answer");
      }
    }
    // If another mount was chosen meanwhile, it is read at once.
    if (this.source.value === source.id) this.asked = performance.now();
    this.busy = false;
  }

  show(objects, source) {
    const total = objects.total;
    this.sums.replaceChildren(figures([
      ["in the cache", format(total.bytes, "bytes"), `${format(total.records, "count")} records`],
      ["files", format(objects.objects, "count"), ""],
      ["reads", format(total.reads, "count"), ""],
      ["hits", format(percent(total), "percent"), ""],
      ["from the source", format(total.origin_bytes, "bytes"), ""],
      ["without a name", format(objects.unnamed.bytes, "bytes"),
        "files that the kernel has forgotten, and earlier contents"],
    ]));
    const seconds = Math.round(objects.sampled_seconds);
    const time = seconds < 120 ? `${10 * Math.ceil(seconds / 10)} seconds`
      : `${Math.round(seconds / 60)} minutes`;
    const how = objects.sampled_one_in > 1 ? `estimated from one record in ${objects.sampled_one_in}`
      : "all of them";
    const words = seconds < 1 ? "Reads are counted from now on, while this panel is open."
      : `Bytes are of now. Reads, hits and misses are of about ${time}, ${how}.`;
    // A screen reader announces new words, not each answer.
    if (this.status.textContent !== words) this.status.textContent = words;
    if (!objects.files.length) {
      this.say("No file is in this cache", `Read a file through ${source.name}. Reads that the kernel's
        page cache answers do not reach this cache.`);
      return;
    }
    this.empty.hidden = true;
    this.tables.hidden = false;
    const rows = (list) => list.map((row) => ({ ...row, hit_percent: percent(row) }));
    this.directories.show(rows(objects.directories));
    this.files.show(rows(objects.files));
  }
}
