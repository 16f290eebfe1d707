// One chart: a canvas with its title, legend and table. It draws lines, stacked areas, or a row of
// colours for each CPU. All charts show the same moments; a chart draws only while it is visible.
//
// The scale is steady: it grows when it must, and shrinks only when little of it is used.

import * as data from "/data.js";
import { clock, day, format, mark, moment, roundUp } from "/format.js";
import { point, show, span, view, zoom, follow } from "/view.js";

/** Pixels left of the first moment. */
export const AXIS = 52;
const FOOT = 18;
const HEAD = 6;
const DASHES = { solid: [], dashed: [6, 4], dotted: [2, 3] };
const TABLE_ROWS = 20;

const styles = () => getComputedStyle(document.documentElement);

/** Creates an element; strings only become text, never markup. */
export function element(tag, fields = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(fields)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export class Chart {
  /** `chart`: { id, title, unit, kind: "lines" | "stack" | "cores", series() , top, idle } */
  constructor(chart) {
    this.chart = chart;
    this.scale = 0;
    this.rows = new Map();
    this.canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": chart.title });
    this.legend = element("ul", { class: `legend ${chart.kind}` });
    this.corner = element("small");
    this.table = element("div", { class: "scroll", tabindex: 0, role: "region",
      "aria-label": `${chart.title}, as a table` });
    this.details = element("details", { ontoggle: () => this.draw() },
      element("summary", {}, "Table"), this.table);
    this.root = element("figure", { class: "chart", id: chart.id },
      element("h3", {}, chart.title, this.corner), this.canvas, this.legend, this.details);
    this.seen = false;
    new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting;
      if (this.seen) this.draw();
    }, { rootMargin: "100px" }).observe(this.root);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.listen();
  }

  listen() {
    const canvas = this.canvas;
    const moment = (event) => this.moment(event.clientX - canvas.getBoundingClientRect().left);
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.from = moment(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.until = this.from ? moment(event) : 0;
      point(moment(event));
    });
    canvas.addEventListener("pointerup", (event) => {
      const [from, to] = [this.from, moment(event)].sort((a, b) => a - b);
      const wide = this.from && Math.abs(this.x(to) - this.x(from)) > 6;
      this.from = this.until = 0;
      if (wide) zoom(from, to);
    });
    canvas.addEventListener("pointercancel", () => { this.from = this.until = 0; });
    canvas.addEventListener("pointerleave", () => { if (!this.from) point(0); });
    canvas.addEventListener("dblclick", follow);
    canvas.addEventListener("blur", () => point(0));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [from, to] = span(data.now);
    const cursor = view.cursor || to;
    const step = Math.max(1000, (to - from) / 60);
    const near = (factor) => zoom(cursor - (cursor - from) * factor, cursor + (to - cursor) * factor);
    const actions = {
      ArrowLeft: () => point(Math.max(from, cursor - step)),
      ArrowRight: () => point(Math.min(to, cursor + step)),
      Home: () => point(from),
      End: () => point(to),
      "+": () => near(0.5),
      "=": () => near(0.5),
      "-": () => near(2),
      Escape: follow,
      " ": () => show({ paused: view.paused ? 0 : data.now }),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  x(time) {
    const [from, to] = this.span ?? span(data.now);
    return AXIS + (time - from) / (to - from) * (this.canvas.clientWidth - AXIS);
  }

  moment(x) {
    const [from, to] = this.span ?? span(data.now);
    const share = (x - AXIS) / (this.canvas.clientWidth - AXIS);
    return from + Math.min(1, Math.max(0, share)) * (to - from);
  }

  /** The present series, with the positions of their visible steps. */
  visible() {
    const [from, to] = this.span;
    const steps = data.shown;
    const first = Math.max(0, steps.at(from) - 1);
    const last = Math.min(steps.times.length - 1, steps.at(to));
    return [this.chart.series().filter((series) => steps.has(series.name)), first, last];
  }

  draw() {
    if (!this.seen || !this.canvas.clientWidth) return;
    this.span = span(data.now);
    const [list, first, last] = this.visible();
    const ratio = devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = styles();
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    pen.font = `11px ${style.fontFamily}`;
    if (this.chart.kind === "cores") this.drawCores(pen, width, height, list, first, last);
    else this.drawValues(pen, width, height, list, first, last);
    this.drawTimes(pen, width, height);
    this.drawCursor(pen, height);
    this.fillLegend(list);
    if (this.details.open) this.fillTable(list, first, last);
  }

  /** Steps as points; several steps in one pixel become their highest. */
  points(name, first, last) {
    const { times } = data.shown;
    const [values, low, high] = [data.shown.series, data.shown.low, data.shown.high]
      .map((kind) => kind.get(name));
    const points = [];
    for (let place = first; place <= last; place += 1) {
      const x = this.x(times[place]);
      const value = values[place];
      const [least, most] = [low?.[place] ?? value, high?.[place] ?? value];
      const before = points.at(-1);
      if (before && x - before.x < 0.75) {
        if (!(before.value >= value)) before.value = value;
        if (!(before.least <= least)) before.least = least;
        if (!(before.most >= most)) before.most = most;
      } else points.push({ x, value, least, most, time: times[place] });
    }
    return points;
  }

  drawValues(pen, width, height, list, first, last) {
    const stacked = this.chart.kind === "stack";
    const areas = stacked ? list.filter((series) => !series.line) : [];
    const lines = list.filter((series) => !areas.includes(series));
    const drawn = new Map(list.map((series) => [series, this.points(series.name, first, last)]));
    let most = 0;
    const tops = [];
    for (const series of areas) {
      drawn.get(series).forEach((one, at) => {
        const below = tops[at] ?? 0;
        one.below = below;
        one.above = below + (one.value || 0);
        tops[at] = one.above;
      });
    }
    for (const top of tops) most = Math.max(most, top);
    for (const series of lines) {
      // A line in a stack, such as a target, needs only its mean.
      for (const one of drawn.get(series)) {
        const value = stacked ? one.value : one.most;
        if (value > most) most = value;
      }
    }
    this.fit(most);
    const y = (value) => HEAD + (1 - Math.min(value / this.scale, 1)) * (height - HEAD - FOOT);
    this.drawScale(pen, width, y);
    pen.save();
    pen.beginPath();
    pen.rect(AXIS, 0, width - AXIS, height - FOOT + 1);
    pen.clip();
    for (const series of areas) this.area(pen, series, drawn.get(series), y);
    if (!stacked && data.shown.low.size) {
      for (const series of lines) this.band(pen, series, drawn.get(series), y);
    }
    for (const series of lines) this.line(pen, series, drawn.get(series), y);
    pen.restore();
  }

  /** Chooses the end of the scale. */
  fit(most) {
    const end = Math.max(roundUp(most, this.chart.unit), this.chart.least ?? 0);
    const top = this.chart.top?.();
    // The kernel counts in ticks, so kinds of CPU may add up to a little more than 100%.
    if (top) this.scale = most > top * 1.1 ? end : top;
    else if (end > this.scale || most < this.scale * 0.2) this.scale = end;
  }

  drawScale(pen, width, y) {
    pen.fillStyle = this.colour("quiet");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(y(this.scale * part)) + 0.5;
      pen.strokeStyle = this.colour(part ? "grid" : "line");
      pen.beginPath();
      pen.moveTo(AXIS, at);
      pen.lineTo(width, at);
      pen.stroke();
      pen.fillText(mark(this.scale * part, this.chart.unit), AXIS - 6, Math.max(at, 7));
    }
  }

  /** Runs of points without a gap. */
  runs(points) {
    const runs = [];
    let run = [];
    let before = null;
    for (const one of points) {
      const joined = before && one.time - before.time < Math.max(data.shown.gap, this.pixelTime() * 2.5);
      if (Number.isNaN(one.value)) {
        if (run.length) runs.push(run);
        run = [];
        before = null;
        continue;
      }
      if (!joined && run.length) {
        runs.push(run);
        run = [];
      }
      run.push(one);
      before = one;
    }
    if (run.length) runs.push(run);
    return runs;
  }

  pixelTime() {
    return (this.span[1] - this.span[0]) / Math.max(1, this.canvas.clientWidth - AXIS);
  }

  area(pen, series, points, y) {
    pen.fillStyle = this.colour(series.colour);
    pen.strokeStyle = this.colour("paper");
    for (const run of this.runs(points)) {
      pen.beginPath();
      for (const one of run) pen.lineTo(one.x, y(one.above));
      for (const one of run.toReversed()) pen.lineTo(one.x, y(one.below));
      pen.closePath();
      pen.fill();
      pen.lineWidth = 1;
      pen.beginPath();
      for (const one of run) pen.lineTo(one.x, y(one.above));
      pen.stroke();
    }
  }

  /** The area between minimum and maximum, behind the line of means. */
  band(pen, series, points, y) {
    pen.fillStyle = this.colour(series.colour);
    pen.globalAlpha = 0.22;
    for (const run of this.runs(points)) {
      pen.beginPath();
      for (const one of run) pen.lineTo(one.x, y(one.most));
      for (const one of run.toReversed()) pen.lineTo(one.x, y(one.least));
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  line(pen, series, points, y) {
    pen.strokeStyle = this.colour(series.colour);
    pen.fillStyle = this.colour(series.colour);
    pen.lineWidth = 1.75;
    pen.lineJoin = "round";
    pen.setLineDash(DASHES[series.dash ?? "solid"]);
    for (const run of this.runs(points)) {
      pen.beginPath();
      if (run.length === 1) pen.arc(run[0].x, y(run[0].value), 1.5, 0, 7);
      for (const one of run) pen.lineTo(one.x, y(one.value));
      if (run.length === 1) pen.fill();
      else pen.stroke();
    }
    pen.setLineDash([]);
    pen.lineWidth = 1;
  }

  /** One row for each CPU; darker is busier. */
  drawCores(pen, width, height, list, first, last) {
    const rows = list.length;
    const tall = (height - HEAD - FOOT) / Math.max(1, rows);
    const { times, gap } = data.shown;
    const one = this.x(this.span[0] + data.shown.step) - AXIS;
    pen.fillStyle = this.colour("grid");
    pen.fillRect(AXIS, HEAD, width - AXIS, height - HEAD - FOOT);
    pen.fillStyle = this.colour("blue");
    list.forEach((series, row) => {
      const usr = data.shown.get(series.name);
      const sys = data.shown.get(series.other);
      for (let place = first; place <= last; place += 1) {
        const busy = usr[place] + (sys?.[place] ?? 0);
        if (!(busy > 0)) continue;
        pen.globalAlpha = Math.min(1, busy / 100);
        const right = this.x(times[place]);
        // The value covers the time since the previous step, if there is one.
        const joined = place > 0 && times[place] - times[place - 1] < gap;
        const begun = joined ? this.x(times[place - 1]) : right - one;
        const left = Math.max(AXIS, Math.min(begun - 0.5, right - 1.5));
        pen.fillRect(left, HEAD + row * tall, Math.max(0, right - left), tall - (tall > 6 ? 1 : 0));
      }
    });
    pen.globalAlpha = 1;
    pen.fillStyle = this.colour("quiet");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const every = Math.ceil(13 / tall);
    list.forEach((series, row) => {
      if (row % every === 0) {
        pen.fillText(series.label, AXIS - 6, Math.max(7, HEAD + (row + 0.5) * tall));
      }
    });
  }

  drawTimes(pen, width, height) {
    const [from, to] = this.span;
    const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
    const step = 1000 * (steps.find((one) => (to - from) / 1000 / one <= width / 90) ?? 172800);
    // Hours and days begin in the reader's time zone.
    const zone = new Date(to).getTimezoneOffset() * 60000;
    const begin = Math.ceil((from - zone) / step) * step + zone;
    pen.fillStyle = this.colour("quiet");
    pen.textBaseline = "alphabetic";
    pen.textAlign = "center";
    for (let time = begin; time <= to; time += step) {
      const x = this.x(time);
      if (x < AXIS + 16 || x > width - 24) continue;
      const isDay = step >= 3600000 && (time - zone) % 86400000 === 0;
      pen.fillText(isDay ? day(time) : clock(time, step < 60000), x, height - 3);
    }
  }

  drawCursor(pen, height) {
    if (this.from && this.until) {
      pen.fillStyle = this.colour("accent");
      pen.globalAlpha = 0.2;
      pen.fillRect(this.x(this.from), HEAD, this.x(this.until) - this.x(this.from), height - FOOT - HEAD);
      pen.globalAlpha = 1;
    }
    if (view.cursor < this.span[0] || view.cursor > this.span[1]) return;
    const x = Math.round(this.x(view.cursor)) + 0.5;
    pen.strokeStyle = this.colour("ink");
    pen.setLineDash([2, 2]);
    pen.beginPath();
    pen.moveTo(x, HEAD);
    pen.lineTo(x, height - FOOT);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** The legend shows the values at the cursor, or the last ones. */
  fillLegend(list) {
    const shown = data.shown.nearest(view.cursor || this.span[1]);
    this.corner.textContent = view.cursor && shown >= 0 ? this.when(shown) : "";
    const texts = [];
    const names = new Set();
    for (const series of this.chart.kind === "cores" ? this.busiest(list, shown) : list) {
      names.add(series.name);
      let row = this.rows.get(series.name);
      if (!row) {
        row = this.row(series);
        this.rows.set(series.name, row);
        this.legend.append(row.item);
      }
      const value = shown >= 0 ? this.value(series, shown) : "–";
      if (row.value.textContent !== value) row.value.textContent = value;
      const spread = shown >= 0 ? this.spread(series, shown) : "";
      if (row.spread.textContent !== spread) row.spread.textContent = spread;
      texts.push(`${series.label} ${value}${spread && ` (${spread})`}`);
    }
    for (const [name, row] of this.rows) {
      if (names.has(name)) continue;
      row.item.remove();
      this.rows.delete(name);
    }
    const label = `${this.chart.title}: ${texts.join(", ") || "nothing measured yet"}`;
    // Screen readers read it on arrow keys and on focus, not each second.
    if (document.activeElement !== this.canvas || view.cursor) {
      this.canvas.setAttribute("aria-label", label);
    }
  }

  /** With many CPUs, the legend has only the busiest ones of the moment. */
  busiest(list, shown) {
    const busy = (series) =>
      (data.shown.get(series.name)[shown] || 0) + (data.shown.get(series.other)?.[shown] || 0);
    return list.length <= 8 ? list : [...list].sort((a, b) => busy(b) - busy(a)).slice(0, 6);
  }

  /** The time of a step; for a step of the week, its end. */
  when(shown) {
    return data.shown.step < 60000 ? clock(data.shown.times[shown]) : moment(data.shown.times[shown]);
  }

  /** Minimum and maximum of a step of the week. */
  spread(series, shown) {
    const [least, most] = [data.shown.low, data.shown.high].map((kind) => kind.get(series.name)?.[shown]);
    if (least === undefined || Number.isNaN(least)) return "";
    const unit = series.unit ?? this.chart.unit;
    return `${format(least, unit)} to ${format(most, unit)}`;
  }

  value(series, shown) {
    const one = (name) => data.shown.get(name)?.[shown];
    if (this.chart.kind !== "cores") {
      // A series without a value because of no requests says so.
      const value = one(series.name);
      const idle = this.chart.idle;
      if (Number.isNaN(value) && idle && one(idle.series) === 0) return idle.words;
      return format(value, series.unit ?? this.chart.unit);
    }
    return `${format(one(series.name), "percent")} usr, ${format(one(series.other), "percent")} sys`;
  }

  row(series) {
    const space = "http://www.w3.org/2000/svg";
    const swatch = document.createElementNS(space, "svg");
    swatch.setAttribute("width", 16);
    swatch.setAttribute("height", 10);
    swatch.setAttribute("aria-hidden", "true");
    const mark = document.createElementNS(space, "path");
    const isArea = this.chart.kind !== "lines" && !series.line;
    mark.setAttribute("d", "M0 5H16");
    mark.setAttribute("stroke", `var(--${series.colour ?? "blue"})`);
    mark.setAttribute("stroke-width", isArea ? 10 : 2);
    if (!isArea) mark.setAttribute("stroke-dasharray", DASHES[series.dash ?? "solid"].join(" "));
    swatch.append(mark);
    const value = element("span", { class: "value" });
    const name = element("span", { class: "name", title: series.why ?? series.label }, series.label);
    const spread = element("span", { class: "spread" });
    return { item: element("li", {}, swatch, name, value, spread), value, spread };
  }

  fillTable(list, first, last) {
    const places = [];
    const count = Math.min(TABLE_ROWS, last - first + 1);
    for (let row = 0; row < count; row += 1) {
      places.push(Math.round(last - row * Math.max(1, (last - first) / Math.max(1, count - 1))));
    }
    const head = element("tr", {}, element("th", { scope: "col" }, "Time"),
      ...list.map((series) => element("th", { scope: "col" }, series.label)));
    const rows = [...new Set(places)].filter((place) => place >= 0).map((place) => element("tr", {},
      element("th", { scope: "row" }, this.when(place)),
      ...list.map((series) => element("td", {}, this.value(series, place)))));
    this.table.replaceChildren(element("table", {}, element("thead", {}, head),
      element("tbody", {}, ...rows)));
  }
}
