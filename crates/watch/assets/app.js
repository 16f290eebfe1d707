// The page: builds the sections of all sources and panels, and keeps them up to date.

import { Cache } from "/cache.js";
import { Chart, element } from "/chart.js";
import { charts, figures } from "/charts.js";
import * as data from "/data.js";
import { Doctor } from "/doctor.js";
import { Flame } from "/flame.js";
import { clock, format } from "/format.js";
import { RANGES, begin, follow, show, span, view } from "/view.js";

const by = (id) => document.getElementById(id);
const sections = new Map();
const PANELS = [["overview", "Overview"], ["cache", "Cache"], ["doctor", "Doctor"],
  ["flame", "Flame graph"]];
const panels = { cache: new Cache(by("cache")), doctor: new Doctor(by("doctor")),
  flame: new Flame(by("flame")) };
let waiting = false;

const given = begin(later);
if (given) data.setToken(given);
for (const [seconds, label] of RANGES) {
  by("ranges").append(element("button", { type: "button", "data-seconds": seconds,
    onclick: () => show({ range: seconds, from: 0, to: 0, paused: 0 }) }, label));
}
for (const [id, label] of PANELS) {
  by("panels").append(element("a", { href: `#panel=${id}`, "data-panel": id, onclick: (event) => {
    event.preventDefault();
    show({ panel: id });
  } }, label));
}
by("pause").addEventListener("click", () => {
  if (view.paused || view.from) follow();
  else show({ paused: data.now });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
data.start(later);

/** Draws once before the next frame, for any number of calls. */
function later() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

function draw() {
  data.look(span(data.now));
  drawState();
  drawSections();
  const chosen = panels[view.panel] ? view.panel : "overview";
  for (const [id] of PANELS) by(id).hidden = id !== chosen;
  for (const link of by("panels").children) {
    if (link.dataset.panel === chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  by("ranges").hidden = by("pause").hidden = chosen !== "overview";
  by("keys").hidden = chosen !== "overview";
  panels[chosen]?.draw();
  for (const { list } of sections.values()) for (const chart of list) chart.draw();
  const cost = data.last("host.own_cpu");
  const unseen = data.week ? "while no page is open, it measures every ten seconds, for the week"
    : "while no page is open, nothing. The last hour is kept; “ogive watch --history” keeps a week";
  by("cost").textContent = Number.isNaN(cost) ? "" : `Watching costs ${format(cost, "percent")} of
    one CPU; ${unseen}.`;
}

function drawState() {
  const still = view.paused || view.from;
  const live = by("live");
  const text = {
    starting: "measuring; first values in two seconds",
    token: "no token",
    silent: "the server does not answer",
    live: still ? "paused" : `live, ${clock(data.now)}`,
  }[data.state];
  if (live.textContent !== text) live.textContent = text;
  // A screen reader announces changes of state, not each second.
  live.setAttribute("aria-live", data.state === "live" && !still ? "off" : "polite");
  live.className = `live ${data.state === "live" && !still ? "on" : ""}
    ${data.state === "silent" || data.state === "token" ? "off" : ""}`;
  const pause = by("pause");
  pause.textContent = still ? "Back to now" : "Pause";
  pause.setAttribute("aria-pressed", String(Boolean(still)));
  for (const button of by("ranges").children) {
    const chosen = !view.from && Number(button.dataset.seconds) === view.range;
    const [, , ofWeek] = RANGES.find(([seconds]) => seconds === Number(button.dataset.seconds));
    button.hidden = Boolean(ofWeek) && !data.week && !chosen;
    button.setAttribute("aria-pressed", String(chosen));
  }
  const banner = by("banner");
  const words = {
    token: "This page needs its token. Open the address that “ogive watch” printed at its start.",
    silent: `The server has not answered since ${clock(data.now)}; trying again every three seconds.
      If “ogive watch” was stopped, start it again, and this page continues.`,
  }[data.state] ?? (data.week?.failed ? `The week is no longer kept: ${data.week.failed}.
    Make room, then start “ogive watch” again.` : view.range > 3600 && !data.week && data.times.length
    ? "Only the last hour is kept here. “ogive watch --history” keeps a week." : "");
  banner.hidden = !words;
  if (banner.textContent !== words) banner.textContent = words;
}

function drawSections() {
  const place = by("overview");
  const host = data.sources.find((source) => source.kind === "host");
  if (host) {
    by("host").textContent = `${host.name}, Linux ${host.kernel}`;
    document.title = `${host.name} – ogive watch`;
  }
  for (const source of data.sources) {
    let section = sections.get(source.id);
    if (!section) {
      section = make(source);
      sections.set(source.id, section);
      place.append(section.root);
    }
    update(section, source);
  }
  for (const [id, section] of sections) {
    if (data.sources.some((source) => source.id === id)) continue;
    section.root.remove();
    sections.delete(id);
  }
  drawEmpty(place);
}

/** Shows advice if there is no cache to show. */
function drawEmpty(place) {
  const caches = data.sources.some((source) => source.kind !== "host");
  const old = by("empty");
  if (caches || !data.sources.length) old?.remove();
  else if (!old) {
    place.append(element("section", { id: "empty", "aria-label": "Caches" },
      element("div", { class: "empty" },
        element("h2", {}, "No cache on this host yet"),
        element("p", {}, "Neither ogive nor OpenZFS is mounted here. Mount a directory through ogive with"),
        element("p", {}, element("code", {}, "ogive mount /srv/data /mnt/fast")),
        element("p", {}, "and its charts appear here."))));
  }
}

function make(source) {
  const state = element("p", { class: "state" });
  const facts = element("p", { class: "quiet" });
  const numbers = element("dl", { class: "figures" });
  const grid = element("div", { class: "charts" });
  const title = element("h2", { id: `${source.id}-title` },
    source.kind === "host" ? "Host" : source.name);
  const root = element("section", { "aria-labelledby": `${source.id}-title` },
    element("header", {}, title, state, facts), numbers, grid);
  return { root, state, facts, numbers, grid, list: [] };
}

function update(section, source) {
  const good = source.state === "answers";
  section.state.textContent = source.kind === "mount" ? (good ? "mounted" : source.state) : "";
  section.state.classList.toggle("bad", !good);
  const mount = source.mount;
  section.facts.textContent = mount
    ? `of ${mount.source}, rule ${mount.policy}, at most ${format(mount.arc_max_bytes, "bytes")},
       process ${mount.pid}` : "";
  const rows = figures(source);
  while (section.numbers.children.length < rows.length) {
    section.numbers.append(element("div", {}, element("dt"), element("dd")));
  }
  rows.forEach(([name, unit, value, note], at) => {
    const [term, number] = section.numbers.children[at].children;
    term.textContent = name;
    number.replaceChildren(unit ? format(value, unit) : value, " ", element("small", {}, note));
  });
  const all = charts(source);
  for (const chart of all) {
    if (section.list.some((shown) => shown.chart.id === chart.id)) continue;
    // A chart appears with the first value of one of its series.
    if (!chart.series().some(({ name }) => data.series.has(name) || data.shown.has(name))) continue;
    const made = new Chart(chart);
    section.list.push(made);
    const after = all.slice(all.indexOf(chart) + 1).map((one) => by(one.id)).find(Boolean);
    section.grid.insertBefore(made.root, after ?? null);
  }
}
