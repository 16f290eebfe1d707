// The miss-ratio curve: a sentence, a drawing of hits by size, and a table of some sizes.

import { element } from "/chart.js";
import * as data from "/data.js";
import { format, mark } from "/format.js";

const SPACE = "http://www.w3.org/2000/svg";
const [HEIGHT, LEFT, FOOT, TOP] = [200, 44, 22, 8];
/** About the width on the screen, so that letters keep their size. */
const NARROW = matchMedia("(max-width: 640px)");
/** Sizes in the table, as parts of the present one. */
const PARTS = [0.5, 1, 1.5, 2, 4, 8];
/** Percentage points of hits that are worth more memory. */
const WORTH = 1;
/** In a younger curve, many reads count as first reads that are not. */
const YOUNG_SECONDS = 600;
/** Milliseconds between two requests while a curve is shown. */
const AGAIN = 14000;

const percent = (share) => format(100 * share, "percent");
const whole = (share) => `${Math.round(100 * share)} %`;

function draw(tag, fields, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(fields)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The point of a curve that is nearest to a size. */
function nearest(points, size) {
  return points.reduce((best, point) =>
    Math.abs(Math.log(point.size_bytes / size)) < Math.abs(Math.log(best.size_bytes / size))
      ? point : best);
}

/** The advice, as a sentence. */
export function sentence(answer) {
  const now = nearest(answer.points, answer.allowed_bytes);
  const more = answer.points.filter((point) => point.size_bytes > answer.allowed_bytes);
  const most = more.at(-1);
  const gain = (point) => 100 * (point.hit_ratio - now.hit_ratio);
  const size = (bytes) => format(bytes, "bytes");
  if (gain(most) < Math.max(WORTH, 100 * most.error)) {
    const less = answer.points.find((point) => gain(point) > -WORTH);
    const spare = less.size_bytes < answer.allowed_bytes * 0.8
      ? ` ${size(less.size_bytes)} would do as well.` : "";
    return `More memory would hardly help: hits ${whole(now.hit_ratio)} now, ${whole(most.hit_ratio)}
      with ${size(most.size_bytes)}.${spare}`;
  }
  // The smallest size with most of the possible gain.
  const enough = more.find((point) => gain(point) >= 0.8 * gain(most));
  return `With ${size(enough.size_bytes - answer.allowed_bytes)} more: hits ${whole(now.hit_ratio)} →
    ${whole(enough.hit_ratio)}.`;
}

/** The text under the sentence: the reads behind it. */
function grounds(answer) {
  const minutes = Math.max(1, Math.round(answer.seconds / 60));
  const sampled = answer.sampled_share < 1
    ? `, estimated from one record in ${Math.round(1 / answer.sampled_share)}` : "";
  const young = answer.seconds < YOUNG_SECONDS
    ? " The curve is young and does not know earlier reads, so hits will rise." : "";
  const dropped = answer.dropped > 0
    ? ` ${format(answer.dropped, "count")} reads came too fast and are missing.` : "";
  return `This is an LRU cache under ${format(answer.reads, "count")} reads
    in ${minutes} minute${minutes === 1 ? "" : "s"}${sampled}. ${percent(answer.first_share)} of them were
    the first of their record, which no size hits.${young}${dropped}`;
}

function picture(answer) {
  const { points, allowed_bytes: target } = answer;
  const width = NARROW.matches ? 340 : 640;
  const [first, last] = [points[0].size_bytes, points.at(-1).size_bytes];
  const x = (size) => LEFT + Math.log(size / first) / Math.log(last / first) * (width - LEFT - 8);
  const y = (share) => TOP + (1 - share) * (HEIGHT - TOP - FOOT);
  const text = (at, height, anchor, words) =>
    draw("text", { x: at, y: height, "text-anchor": anchor }, words);
  const line = (points) => `M${points.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L")}`;
  const band = [...points.map((p) => [x(p.size_bytes), y(Math.min(1, p.hit_ratio + p.error))]),
    ...points.toReversed().map((p) => [x(p.size_bytes), y(Math.max(0, p.hit_ratio - p.error))])];
  const marks = [0, 0.5, 1].flatMap((share) => [
    draw("path", { d: `M${LEFT} ${y(share)}H${width - 8}`, class: share ? "grid" : "axis" }),
    text(LEFT - 6, y(share) + 4, "end", mark(100 * share, "percent"))]);
  const sizes = [0.0625, 0.25, 1, 4, 16].map((part) => {
    const anchor = part === 16 ? "end" : part === 0.0625 ? "start" : "middle";
    return text(x(target * part), HEIGHT - 6, anchor, format(target * part, "bytes"));
  });
  const now = nearest(points, target);
  const shown = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", class: "curve",
    "aria-label": `Hits by size of the cache: ${PARTS.map((part) => nearest(points, target * part))
      .map((p) => `${format(p.size_bytes, "bytes")} ${whole(p.hit_ratio)}`).join(", ")}` },
  ...marks, ...sizes,
  draw("path", { d: `${line(band)}Z`, class: "band" }),
  draw("path", { d: line(points.map((p) => [x(p.size_bytes), y(p.hit_ratio)])), class: "line" }),
  draw("path", { d: `M${x(target)} ${TOP}V${HEIGHT - FOOT}`, class: "now" }),
  draw("circle", { cx: x(target), cy: y(now.hit_ratio), r: 4 }));
  return shown;
}

function table(answer) {
  const now = nearest(answer.points, answer.allowed_bytes);
  const rows = PARTS.map((part) => nearest(answer.points, answer.allowed_bytes * part)).map((point) => {
    const gain = 100 * (point.hit_ratio - now.hit_ratio);
    const change = point === now ? "now" : `${gain < 0 ? "−" : "+"}${Math.abs(gain).toFixed(1)} points`;
    return element("tr", {}, element("th", { scope: "row" }, format(point.size_bytes, "bytes")),
      element("td", {}, percent(point.hit_ratio)),
      element("td", {}, point.error > 0 ? `± ${(100 * point.error).toFixed(1)}` : "exact"),
      element("td", {}, change));
  });
  const heads = ["Size", "Hits", "Within", "Against now"];
  return element("table", {}, element("thead", {}, element("tr", {},
    ...heads.map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, ...rows));
}

/** The part of the panel. */
export class Curve {
  constructor() {
    this.root = element("section", { class: "memory", "aria-labelledby": "memory-title", hidden: true });
    this.title = element("h3", { id: "memory-title" }, "What more memory would buy");
    this.root.append(this.title);
  }

  clear() {
    this.drawn = null;
    this.root.hidden = true;
    delete this.root.dataset.shown;
  }

  async ask(source) {
    // A curve changes slowly, and each answer costs a pass over all its records.
    const isKnown = this.drawn === source.id && performance.now() - this.asked < AGAIN;
    if (isKnown) return () => {};
    this.asked = performance.now();
    try {
      const answer = await data.ask(`/api/curve?source=${encodeURIComponent(source.id)}`);
      const curve = await answer.json();
      return () => this.show(curve, source);
    } catch (error) {
      return () => this.say(error.message || "no answer");
    }
  }

  put(...children) {
    this.root.hidden = false;
    this.root.replaceChildren(this.title, ...children);
  }

  say(words) {
    this.drawn = null;
    if (this.root.dataset.shown === words && !this.root.hidden) return;
    this.root.dataset.shown = words;
    this.put(element("p", { class: "quiet" }, words));
  }

  show(answer, source) {
    if (!answer.points.length) {
      this.say(answer.reads ? `${format(answer.reads, "count")} reads so far, while this panel is open. With
        ${format(answer.reads_min, "count")} reads it shows the hits of a larger cache.`
        : `Reads are counted while this panel is open, and none has come yet. Leave it open while
        programs read through ${source.name}: then it shows the hits of a larger cache.`);
      return;
    }
    this.drawn = source.id;
    const words = sentence(answer) + grounds(answer);
    if (this.root.dataset.shown === words && !this.root.hidden) return;
    this.root.dataset.shown = words;
    this.put(element("p", { class: "verdict" }, sentence(answer)),
      element("p", { class: "quiet" }, grounds(answer)),
      element("div", { class: "pair" }, picture(answer), element("div", { class: "scroll", tabindex: 0,
        role: "region", "aria-label": "Hits by size, as a table" }, table(answer))));
  }
}
