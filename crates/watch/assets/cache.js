// The cache of a mount: what is in it by directory and file, who reads it, what more memory would buy,
// and what the second level has written of what it may. It asks while the panel is open; the mount
// counts by file, and tells its reads, only while somebody asks.

import { element } from "/chart.js";
import { Curve } from "/curve.js";
import * as data from "/data.js";
import { format } from "/format.js";
import { view } from "/view.js";

const AGAIN = 5000;
const SECONDS_A_DAY = 86400;

/** Columns of both tables: what they show, its unit, and what a screen reader is told of it. */
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
    // What was not read has no share of hits, and stands last.
    const value = (row) => Number.isFinite(row[this.by]) ? row[this.by] : -1;
    const sorted = [...rows].sort((a, b) => value(b) - value(a));
    this.body.replaceChildren(...sorted.map((row) => element("tr", {},
      element("th", { scope: "row" }, row.path),
      ...COLUMNS.map(([name, , unit]) => element("td", {}, format(row[name], unit))))));
  }
}

/** What the second level has written, against what it may, in figures. */
export function wear(source) {
  const level = source.mount?.second_level;
  const values = (data.series.get(`${source.id}.l2_write_bytes`) ?? [])
    .filter((value) => !Number.isNaN(value));
  if (!level || !values.length) return [];
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const told = [
    ["on the devices", format(data.last(`${source.id}.l2_bytes`), "bytes"), ""],
    ["written", format(mean, "bytes/s"), "mean of the steps that this page has"],
  ];
  if (level.size_bytes > 0) {
    const daily = mean * SECONDS_A_DAY / (level.size_bytes * (level.devices?.length || 1));
    const most = level.drive_writes_per_day;
    told.push(["drive writes a day", daily.toFixed(2),
      most ? `at this rate, of at most ${most} after the first fill`
        : "at this rate; no budget was set (--l2-dwpd)"]);
  }
  if (level.write_max_bytes_per_second) {
    told.push(["write limit", format(level.write_max_bytes_per_second, "bytes/s"), "on each device"]);
  }
  return told;
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
    this.directories = new Table("Directories, with all that is below them");
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

  /** Another mount is looked at: nothing of the one before stays. */
  change() {
    this.asked = -Infinity;
    this.clear();
    this.empty.hidden = true;
    this.draw();
  }

  /** Takes away what was told. */
  clear() {
    this.curve.clear();
    this.tables.hidden = true;
    this.status.textContent = "";
    this.sums.replaceChildren();
  }

  draw() {
    if (view.panel !== "cache" || document.hidden) return;
    const mounts = data.sources.filter((source) => source.kind === "mount");
    const there = mounts.map((source) => source.id).join();
    if (this.source.dataset.told !== there) {
      const chosen = this.source.value;
      this.source.replaceChildren(...mounts.map((source) =>
        element("option", { value: source.id }, source.name)));
      if (mounts.some((source) => source.id === chosen)) this.source.value = chosen;
      else if (chosen) this.clear();
      this.source.dataset.told = there;
    }
    this.source.hidden = !mounts.length;
    const source = mounts.find((one) => one.id === this.source.value);
    if (!source) {
      this.clear();
      this.level.replaceChildren();
      delete this.level.dataset.told;
      this.say("No mount of ogive", `What is in a cache can be told of mounts of ogive. Mount a
        directory with “ogive mount SRC MNT”, and it appears here by itself.`);
      return;
    }
    this.drawLevel(source);
    if (!this.busy && performance.now() - this.asked > AGAIN) this.ask(source);
  }

  /** Words in the place of the tables. */
  say(title, text) {
    this.tables.hidden = true;
    this.empty.hidden = false;
    if (this.empty.dataset.told === title + text) return;
    this.empty.dataset.told = title + text;
    this.empty.replaceChildren(element("h3", {}, title), element("p", {}, text));
  }

  drawLevel(source) {
    const rows = wear(source);
    const told = JSON.stringify(rows);
    if (this.level.dataset.told === told) return;
    this.level.dataset.told = told;
    this.level.replaceChildren(...rows.length
      ? [element("h3", {}, "Second level: what it wears"), figures(rows)] : []);
  }

  async ask(source) {
    this.busy = true;
    try {
      const answer = await data.ask(`/api/objects?source=${encodeURIComponent(source.id)}`);
      const told = await answer.json();
      const tell = await this.curve.ask(source);
      if (this.source.value === source.id) {
        this.show(told, source);
        tell();
      }
    } catch (error) {
      // Somebody else is looking: what is shown stays until the next answer.
      if (error.status !== 409 && this.source.value === source.id) {
        this.clear();
        this.say("Nothing to show", error.message || "no answer");
      }
    }
    // Who chose another mount meanwhile does not wait for the next turn.
    if (this.source.value === source.id) this.asked = performance.now();
    this.busy = false;
  }

  show(told, source) {
    const total = told.total;
    this.sums.replaceChildren(figures([
      ["in the cache", format(total.bytes, "bytes"), `${format(total.records, "count")} records`],
      ["files", format(told.objects, "count"), ""],
      ["reads", format(total.reads, "count"), ""],
      ["hits", format(percent(total), "percent"), ""],
      ["from the source", format(total.origin_bytes, "bytes"), ""],
      ["without a name", format(told.unnamed.bytes, "bytes"),
        "files the kernel has forgotten, and contents of before"],
    ]));
    const seconds = Math.round(told.sampled_seconds);
    const time = seconds < 120 ? `${10 * Math.ceil(seconds / 10)} seconds`
      : `${Math.round(seconds / 60)} minutes`;
    const how = told.sampled_one_in > 1 ? `estimated from one record in ${told.sampled_one_in}`
      : "all of them";
    const words = seconds < 1 ? "Reads are counted from now on, while this panel is open."
      : `Bytes are of now. Reads, hits and misses are of about ${time}, ${how}.`;
    // A screen reader is told when the words change, not with each answer.
    if (this.status.textContent !== words) this.status.textContent = words;
    if (!told.files.length) {
      this.say("Nothing of a file is in this cache", `Read something through ${source.name}. What the
        kernel's page cache answers does not come here.`);
      return;
    }
    this.empty.hidden = true;
    this.tables.hidden = false;
    const rows = (list) => list.map((row) => ({ ...row, hit_percent: percent(row) }));
    this.directories.show(rows(told.directories));
    this.files.show(rows(told.files));
  }
}
