// The charts and their series. A chart without values in any of its series is not shown.

import * as data from "/data.js";
import { format } from "/format.js";

const RULES = ["LIRS", "LRU", "2Q", "ARC"];
const WHEEL = ["blue", "vermilion", "green", "yellow", "sky", "pink", "plum"];

/** Series `[name, label, colour, more]` of a source. */
function of(source, rows) {
  const list = rows.map(([name, label, colour, more]) =>
    ({ name: `${source}.${name}`, label, colour, ...more }));
  return () => list;
}

/** Series with names known only at run time: the largest ones, and the sum of the others. */
function found(prefix) {
  const colours = new Map();
  return () => {
    const names = [...data.shown.series.keys()].filter((name) => name.startsWith(prefix));
    // Over the last two minutes, or over the whole shown part of the week.
    const recent = (name) => data.shown.get(name).slice(data.shown.step < 60000 ? -120 : 0)
      .reduce((sum, value) => sum + (value || 0), 0);
    const weights = new Map(names.map((name) => [name, recent(name)]));
    const other = `${prefix}other`;
    const most = names.filter((name) => name !== other && weights.get(name) > 0)
      .sort((a, b) => weights.get(b) - weights.get(a)).slice(0, WHEEL.length);
    // A role keeps its colour for as long as it is shown.
    for (const name of [...colours.keys()]) if (!most.includes(name)) colours.delete(name);
    const free = () => WHEEL.find((colour) => ![...colours.values()].includes(colour));
    for (const name of most) if (!colours.has(name)) colours.set(name, free());
    const list = [...colours].map(([name, colour]) =>
      ({ name, label: name.slice(prefix.length), colour }));
    if (names.includes(other)) list.push({ name: other, label: "other", colour: "grey" });
    return list;
  };
}

function cores() {
  const list = [];
  for (let core = 0; data.shown.has(`host.core_usr.${core}`); core += 1) {
    list.push({ name: `host.core_usr.${core}`, other: `host.core_sys.${core}`, colour: "blue",
      label: `CPU ${core}` });
  }
  return list;
}

const whole = () => 100;

function host() {
  const one = (rows) => of("host", rows);
  return [
    { id: "host-cpu", title: "CPU by kind", unit: "percent", kind: "stack", top: whole, series: one([
      ["cpu_usr", "user", "blue", { why: "programs" }],
      ["cpu_sys", "system", "vermilion", { why: "the kernel" }],
      ["cpu_irq", "interrupts", "pink"],
      ["cpu_steal", "stolen", "plum", { why: "taken by the hypervisor" }],
      ["cpu_iowait", "idle, I/O waits", "grey", { why: "idle while a thread waits for I/O" }],
    ]) },
    { id: "host-cores", title: "CPU by number", unit: "percent", kind: "cores", series: cores },
    { id: "host-roles", title: "CPU by role of threads", unit: "percent", kind: "stack",
      least: 10, series: found("host.role.") },
    { id: "host-memory", title: "Memory", unit: "bytes", kind: "stack",
      top: () => data.last("host.memory_total"), series: one([
        ["memory_programs", "programs", "blue"],
        ["memory_shared", "shared", "sky"],
        ["memory_slab", "slab", "vermilion", { why: "the kernel's caches of objects" }],
        ["memory_kernel", "kernel, other", "yellow", { why: "including OpenZFS's ARC" }],
        ["memory_cache", "page cache", "green"],
        ["memory_available", "available", "ink", { line: true, dash: "dashed",
          why: "memory that programs could still get" }],
      ]) },
    { id: "host-pressure", title: "Pressure (time waited)", unit: "percent", kind: "lines",
      least: 10, series: one([
        ["pressure_cpu_some", "for CPU", "blue"],
        ["pressure_io_some", "for I/O", "vermilion", { dash: "dashed" }],
        ["pressure_memory_some", "for memory", "green", { dash: "dotted" }],
        ["pressure_memory_full", "all, for memory", "pink"],
      ]) },
  ];
}

function cache(id) {
  const one = (rows) => of(id, rows);
  return [
    { id: `${id}-hits`, title: "Hit ratio", unit: "percent", kind: "lines", top: whole, series: one([
      ["demand_hit_percent", "demand", "blue", { why: "of lookups by programs" }],
      ["prefetch_hit_percent", "prefetch", "green", { dash: "dashed" }],
      ["l2_hit_percent", "second level", "vermilion", { dash: "dotted" }],
    ]) },
    { id: `${id}-requests`, title: "Lookups", unit: "per second", kind: "stack", least: 10,
      series: one([
        ["demand_data_hits", "data hits", "blue"],
        ["demand_metadata_hits", "metadata hits", "sky"],
        ["prefetch_hits", "prefetch hits", "green"],
        ["demand_data_misses", "data misses", "vermilion"],
        ["demand_metadata_misses", "metadata misses", "yellow"],
        ["prefetch_misses", "prefetch misses", "pink"],
      ]) },
    { id: `${id}-size`, title: "Size against target", unit: "bytes", kind: "stack", series: one([
      ["mru_bytes", "MRU", "blue", { why: "used once lately" }],
      ["mfu_bytes", "MFU", "vermilion", { why: "used several times" }],
      ["anon_bytes", "anonymous", "sky"],
      ["header_bytes", "headers", "grey"],
      ["target", "target", "ink", { line: true }],
      ["mru_target", "target of MRU", "ink", { line: true, dash: "dotted" }],
      // A line, because the window is a part of MRU and would be stacked twice.
      ["window_bytes", "window", "ink", { line: true, dash: "dashed",
        why: "new records on trial, part of MRU" }],
    ]) },
    { id: `${id}-ghosts`, title: "Ghosts", unit: "bytes", kind: "stack", series: one([
      ["mru_ghost_bytes", "of MRU", "sky", { why: "keys evicted from MRU" }],
      ["mfu_ghost_bytes", "of MFU", "yellow", { why: "keys evicted from MFU" }],
    ]) },
    { id: `${id}-ghost-hits`, title: "Hits of lists and ghosts", unit: "per second", kind: "lines",
      least: 10, series: one([
        ["mru_hits", "MRU", "blue"],
        ["mfu_hits", "MFU", "vermilion"],
        ["mru_ghost_hits", "ghosts of MRU", "sky", { dash: "dashed" }],
        ["mfu_ghost_hits", "ghosts of MFU", "yellow", { dash: "dashed" }],
      ]) },
    { id: `${id}-bytes`, title: "Bytes read and written", unit: "bytes/s", kind: "lines",
      least: 1024, series: one([
        ["read_bytes", "to programs", "blue"],
        ["origin_bytes", "from the source", "vermilion", { dash: "dashed" }],
        ["written_bytes", "written", "green", { dash: "dotted" }],
      ]) },
    { id: `${id}-latency`, title: "Latency of loads (mean)", unit: "ms", kind: "lines", series: one([
      ["load_ms", "a load", "vermilion", { why: "from the source or the second level" }],
      ["joined_wait_ms", "waiting for another's", "blue", { dash: "dashed" }],
    ]) },
    { id: `${id}-origin`, title: "Latency of reads of the source", unit: "ms", kind: "lines",
      idle: { series: `${id}.origin_reads`, words: "no requests" }, series: one([
        ["origin_read_p50_ms", "p50", "blue", { why: "half of the reads took at most this long" }],
        ["origin_read_p99_ms", "p99", "vermilion", { dash: "dashed",
          why: "99 of a hundred reads took at most this long" }],
      ]) },
    { id: `${id}-give`, title: "Evicted and given back", unit: "bytes/s", kind: "lines",
      least: 1024, series: one([
        ["evict_bytes", "evicted", "blue"],
        ["reclaim_bytes", "reclaimed for others", "vermilion", { dash: "dashed" }],
      ]) },
    { id: `${id}-prune`, title: "Prune", unit: "per second", kind: "lines", least: 10, series: one([
      ["prunes", "requests", "vermilion"],
      ["prune_examined", "inodes examined", "blue", { dash: "dashed" }],
      ["prune_freed", "inodes freed", "green", { dash: "dotted" }],
    ]) },
    { id: `${id}-skips`, title: "Work in vain", unit: "per second", kind: "lines", least: 10,
      series: one([
        ["evict_skips", "evictions skipped", "vermilion"],
        ["mutex_misses", "locks missed", "blue", { dash: "dashed" }],
      ]) },
    { id: `${id}-l2`, title: "Second level", unit: "bytes/s", kind: "lines", least: 1024, needs: "l2_bytes",
      series: one([
        ["l2_read_bytes", "read", "blue"],
        ["l2_write_bytes", "written", "vermilion", { dash: "dashed" }],
      ]) },
    { id: `${id}-stages`, title: "CPU of the daemon by stage", unit: "percent", kind: "stack",
      least: 5, series: found(`${id}.stage.`) },
  ];
}

/** The charts of a source. */
export function charts(source) {
  if (source.kind === "host") return host();
  const second = (chart) => !chart.needs || data.last(`${source.id}.${chart.needs}`) > 0;
  return cache(source.id).filter(second);
}

/** Figures above the charts: `[name, unit, value, note]`. */
export function figures(source) {
  const last = (name) => data.last(`${source.id}.${name}`);
  const now = (name) => data.series.get(`${source.id}.${name}`)?.at(-1) ?? NaN;
  if (source.kind === "host") {
    return [
      ["CPU busy", "percent", last("cpu_usr") + last("cpu_sys") + last("cpu_irq"),
        `of ${source.cpus} CPU${source.cpus === 1 ? "" : "s"}`],
      ["system", "percent", last("cpu_sys"), ""],
      ["memory available", "bytes", last("memory_available"), ""],
      ["waiting for I/O", "percent", last("pressure_io_some"), "of the time"],
    ];
  }
  const lookups = ["demand_data_hits", "demand_metadata_hits", "demand_data_misses",
    "demand_metadata_misses"].reduce((sum, name) => sum + (last(name) || 0), 0);
  const rows = [
    ["demand hits", "percent", last("demand_hit_percent"), ""],
    ["lookups", "per second", lookups, ""],
    ["size", "bytes", last("size"), ""],
    ["target", "bytes", last("target"), ""],
  ];
  if (source.kind === "mount") {
    rows.push(["from the source", "bytes/s", last("origin_bytes"), ""]);
    const [p50, p99] = ["p50", "p99"].map((name) => now(`origin_read_${name}_ms`));
    // Without requests there is no latency, which differs from zero.
    rows.push(now("origin_reads") === 0 ? ["latency of the source", "", "no requests", "lately"]
      : ["latency of the source", "ms", p99, `p99; p50 ${format(p50, "ms")}`]);
    rows.push(["daemon", "percent", last("daemon_cpu"), "of one CPU"]);
    const rule = RULES[last("rule_data")];
    if (rule && source.mount?.policy === "duel") rows.push(["rule for data", "", rule, "by the duel"]);
  }
  return rows;
}
