// The shown time, whether it is paused, and the cursor; all charts share it. The part of the address
// after "#" has it, so that a link shows the same.

/** Seconds, the label of the button, and whether it needs a week file. */
export const RANGES = [[60, "1 min"], [300, "5 min"], [900, "15 min"], [3600, "1 h"],
  [21600, "6 h", true], [86400, "1 day", true], [604800, "1 week", true]];

export const view = {
  panel: "overview",
  /** Seconds before now, while nothing is zoomed. */
  range: 60,
  /** The zoomed time in milliseconds, both or neither. */
  from: 0,
  to: 0,
  /** The moment at which the view is paused, or 0. */
  paused: 0,
  /** The moment under the cursor, or 0. */
  cursor: 0,
};

let changed = () => {};

/** Reads the address. Returns the token in it, if there is one, and removes it. */
export function begin(callback) {
  changed = callback;
  addEventListener("hashchange", () => {
    read();
    changed();
  });
  const token = read();
  if (token) write(true);
  return token;
}

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (name) => Math.max(0, Number(given.get(name)) || 0);
  view.panel = given.get("panel") ?? "overview";
  view.range = RANGES.some(([seconds]) => seconds === number("range")) ? number("range") : 60;
  view.paused = number("paused");
  [view.from, view.to] = [number("from"), number("to")];
  if (!(view.to > view.from)) view.from = view.to = 0;
  return given.get("token");
}

function write(replace) {
  const parameters = new URLSearchParams();
  if (view.panel !== "overview") parameters.set("panel", view.panel);
  if (view.range !== 60) parameters.set("range", view.range);
  if (view.from) {
    parameters.set("from", Math.round(view.from));
    parameters.set("to", Math.round(view.to));
  }
  if (view.paused) parameters.set("paused", Math.round(view.paused));
  const address = `#${parameters}`;
  history[replace ? "replaceState" : "pushState"](null, "", address);
}

/** The shown time, as its two ends. */
export function span(now) {
  if (view.from) return [view.from, view.to];
  const end = view.paused || now;
  return [end - view.range * 1000, end];
}

/** Changes the view. */
export function show(change, replace = false) {
  Object.assign(view, change);
  write(replace);
  changed();
}

/** Zooms to a time of at least ten seconds. */
export function zoom(from, to) {
  const middle = (from + to) / 2;
  const half = Math.max((to - from) / 2, 5000);
  show({ from: middle - half, to: middle + half });
}

/** Returns to the present, not paused. */
export function follow() {
  show({ from: 0, to: 0, paused: 0, cursor: 0 });
}

/** Moves the cursor, which is not part of the address. */
export function point(time) {
  view.cursor = time;
  changed();
}
