// The doctor: a verdict with its evidence and remedies. It observes the host on request, and every
// minute if the box is checked and the panel is open.

import { element } from "/chart.js";
import * as data from "/data.js";
import { clock, format } from "/format.js";
import { show, view } from "/view.js";

const SECONDS = 5;
const CAPTURE_SECONDS = 10;
const AGAIN = 60000;

/** A list of the host and its mounts to choose from, kept up to date. */
export function chooser(label) {
  const select = element("select", { "aria-label": label });
  const update = () => {
    const sources = data.sources.filter((source) => source.kind !== "zfs");
    const ids = sources.map((source) => source.id).join();
    if (select.dataset.shown === ids) return;
    const chosen = select.value;
    select.replaceChildren(...sources.map((source) => element("option", { value: source.id },
      source.kind === "host" ? "this host" : source.name)));
    if (sources.some((source) => source.id === chosen)) select.value = chosen;
    select.dataset.shown = ids;
  };
  return { select, update };
}

/** Shows the time left while work runs. */
export async function during(status, what, seconds, work) {
  const begun = performance.now();
  const countDown = () => {
    const left = Math.ceil(seconds - (performance.now() - begun) / 1000);
    status.textContent = left > 0 ? `${what}: ${left} s left` : `${what}: preparing the result`;
  };
  countDown();
  const timer = setInterval(countDown, 1000);
  try {
    const result = await work();
    status.textContent = "";
    return result;
  } catch (error) {
    status.textContent = error.message || "the server does not answer";
    return null;
  } finally {
    clearInterval(timer);
  }
}

/** The chart that shows a line of evidence. */
function chartOf(line, source) {
  const input = (line.sources ?? []).map((one) => one.input).join(" ");
  const text = (line.text ?? "").toLowerCase();
  const cache = source === "host" ? (document.getElementById("zfs-hits") ? "zfs" : null) : source;
  if (cache && /arcstats|ogivestats|zfetch/.test(input)) {
    if (/prune/.test(text)) return `${cache}-prune`;
    if (/skip|mutex/.test(text)) return `${cache}-skips`;
    if (/ghost/.test(text)) return `${cache}-ghosts`;
    if (/evict|reclaim/.test(text)) return `${cache}-give`;
    if (/hit|miss/.test(text)) return `${cache}-hits`;
    return `${cache}-size`;
  }
  if (/pressure/.test(input)) return "host-pressure";
  if (/meminfo|slab|buddy|vmstat/.test(input)) return "host-memory";
  if (/thread|sample|profile/.test(input)) return "host-roles";
  return /stat/.test(input) ? "host-cpu" : null;
}

function toChart(id) {
  show({ panel: "overview" });
  requestAnimationFrame(() => {
    const chart = document.getElementById(id);
    if (!chart) return;
    for (const old of document.querySelectorAll(".chart.marked")) old.classList.remove("marked");
    chart.classList.add("marked");
    chart.scrollIntoView({ block: "center" });
    chart.querySelector("canvas").focus({ preventScroll: true });
  });
}

/** A text with commands between backticks, as text and code elements only. */
function words(text) {
  return text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function lines(title, list, source) {
  if (!list?.length) return "";
  const rows = list.map((line) => {
    if (typeof line === "string") return element("li", {}, ...words(line));
    const chart = chartOf(line, source);
    const there = chart && document.getElementById(chart);
    return element("li", {}, line.text ?? `${line.cause}: ${line.because ?? line.by ?? ""}`, " ",
      there ? element("button", { type: "button", class: "link",
        onclick: () => toChart(chart) }, "show the chart") : "");
  });
  return element("div", {}, element("h4", {}, title), element("ul", {}, ...rows));
}

function finding(one, source) {
  const remedy = one.remedy ?? {};
  const share = one.share_percent ? `, ${Math.round(one.share_percent)} % of the busy CPU` : "";
  return element("article", { class: "finding", "data-cause": one.id },
    element("h3", {}, capital(one.title), element("small", {}, `${one.confidence_word}${share}`)),
    lines("Evidence", one.evidence, source),
    lines("Evidence against it", one.against, source),
    lines("Do now", remedy.now, source),
    lines("For good", remedy.lasting, source),
    lines("Do not", remedy.dont, source),
    lines("How to see that it helped", remedy.verify, source),
    element("details", {}, element("summary", {}, "Mechanism, and causes ruled out"),
      element("p", {}, one.mechanism ?? ""), lines("Ruled out", one.ruled_out, source)));
}

function table(caption, head, rows) {
  if (!rows.length) return "";
  const cells = (tag, scope, list) => list.map((text) => element(tag, { scope }, text));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...cells("th", "col", head))),
      element("tbody", {}, ...rows.map(([name, ...rest]) =>
        element("tr", {}, ...cells("th", "row", [name]), ...cells("td", undefined, rest))))));
}

/** The differences between the last minute and the minute an hour ago. */
function comparison(report) {
  const differences = report.differences.slice(0, 12).map((one) => [`${one.kind} ${one.name}`,
    one.healthy ?? "–", one.sick ?? "–",
    one.explains_percent ? `${Math.round(one.explains_percent)} % of the additional CPU`
      : one.cited_by ? `evidence of ${one.cited_by}` : ""]);
  const roles = report.roles.map(([role, then, now]) =>
    [role, format(then, "percent"), format(now, "percent")]);
  return [
    element("p", { class: "verdict" }, capital(report.sentence)),
    element("p", { class: "quiet" }, "Means of one minute each, from the steps that the charts show."),
    table("Differences", ["figure", "an hour ago", "now", "explains"], differences),
    table("CPU by role of threads, of one CPU", ["role", "an hour ago", "now"], roles),
  ];
}

export class Doctor {
  constructor(root) {
    this.root = root;
    this.earlier = [];
    this.busy = false;
    this.looked = 0;
    this.source = chooser("Host or mount");
    this.status = element("p", { role: "status", class: "quiet" });
    this.answer = element("div", { class: "answer" }, element("div", { class: "empty" },
      element("h3", {}, "No look yet"),
      element("p", {}, `“Look” samples the CPUs for ${SECONDS} seconds, reads the counters before and
        after, and says where the CPU goes, and why. It changes nothing on the host.`)));
    this.look = element("button", { type: "button", class: "main", onclick: () => this.ask() },
      `Look for ${SECONDS} s`);
    this.capture = element("button", { type: "button", onclick: () => this.pack() },
      `Capture ${CAPTURE_SECONDS} s to a file`);
    this.before = element("button", { type: "button", onclick: () => this.compare() },
      "Compare with an hour ago");
    this.again = element("input", { type: "checkbox", id: "again" });
    this.log = element("ol", { class: "log" });
    root.append(element("section", { "aria-labelledby": "doctor-title" },
      element("header", {}, element("h2", { id: "doctor-title" }, "Doctor")),
      element("div", { class: "controls" }, this.source.select, this.look, this.capture, this.before,
        element("label", { for: "again" }, this.again, " again every minute")),
      this.status, this.answer,
      element("details", {}, element("summary", {}, "Earlier verdicts of this tab"), this.log)));
    setInterval(() => {
      const open = view.panel === "doctor" && !document.hidden;
      if (open && this.again.checked && performance.now() - this.looked > AGAIN) this.ask();
    }, 5000);
  }

  draw() {
    this.source.update();
    this.look.disabled = this.capture.disabled = this.before.disabled = this.busy;
  }

  async work(what, seconds, path) {
    if (this.busy) return null;
    this.busy = true;
    this.draw();
    const answer = await during(this.status, what, seconds, () => data.ask(path, { method: "POST" }));
    this.busy = false;
    this.looked = performance.now();
    this.draw();
    return answer;
  }

  async ask() {
    const source = this.source.select.value || "host";
    const answer = await this.work("looking", SECONDS,
      `/api/diagnose?source=${encodeURIComponent(source)}&seconds=${SECONDS}`);
    if (answer) this.show(await answer.json(), source);
  }

  show(report, source) {
    const time = clock(Date.now());
    const notes = (report.notes ?? []).map((note) => ` ${capital(note)}.`).join("");
    const ask = report.ask ? element("p", {}, report.ask) : "";
    this.answer.replaceChildren(
      element("p", { class: "verdict" }, report.sentence),
      element("p", { class: "quiet" }, `Looked until ${time}.${notes}`), ask,
      ...report.findings.map((one) => finding(one, source)));
    this.earlier.unshift([time, report.sentence]);
    this.earlier.length = Math.min(this.earlier.length, 20);
    this.log.replaceChildren(...this.earlier.map(([at, sentence]) =>
      element("li", {}, `${at}: ${sentence}`)));
  }

  async compare() {
    const source = this.source.select.value || "host";
    const answer = await this.work("comparing", 0,
      `/api/compare?source=${encodeURIComponent(source)}`);
    if (answer) this.answer.replaceChildren(...comparison(await answer.json()));
  }

  async pack() {
    const source = this.source.select.value || "host";
    const answer = await this.work("capturing", CAPTURE_SECONDS,
      `/api/capture?source=${encodeURIComponent(source)}&seconds=${CAPTURE_SECONDS}`);
    if (!answer) return;
    const address = URL.createObjectURL(await answer.blob());
    element("a", { href: address, download: "ogive-capture.tar.zst" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    this.status.textContent =
      "The capture is in your downloads; “ogive doctor FILE” reads it. It contains names of programs and data sets.";
  }
}
