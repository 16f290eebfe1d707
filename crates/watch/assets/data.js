// The steps that were measured: asked for once a second while the page is visible; and of the week, if
// the server keeps one, the part that is shown.
//
// Times are kept in one array, and of each series as many values; what was not measured is NaN.

import { Steps } from "/steps.js";

const KEPT = 3600;
const MINUTE = 60000;
/** Points of the week that a chart has room for. */
const POINTS = 400;
const PERIOD = 1000;

export const times = [];
export const series = new Map();
/** What the server keeps of the week: since when, and how; null if it does not. */
export let week = null;
/** What is shown now: the last hour, or a part of the week. */
export let shown = new Steps(times, series, PERIOD);
export let sources = [];
/** What the page should say: "starting", "live", "silent" (no answer) or "token". */
export let state = "starting";
/** When the last answer came, by the server's clock. */
export let now = Date.now();

let names = [];
let sequence = 0;
let timer = 0;
let changed = () => {};
let hour = shown;
let part = null;
let asking = false;

/** The token, kept for as long as the tab is open. */
export function token() {
  return sessionStorage.getItem("token") ?? "";
}

export function setToken(text) {
  sessionStorage.setItem("token", text);
}

function fields() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

/** Asks the server for something; throws with words of its own if it refuses. */
export async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { ...fields(), ...options.headers } });
  if (!answer.ok) {
    const error = new Error((await answer.text()).trim());
    error.status = answer.status;
    throw error;
  }
  return answer;
}

/** Starts to ask; calls back after each answer and each failure. */
export function start(callback) {
  changed = callback;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden) poll();
  });
  poll();
}

async function poll() {
  clearTimeout(timer);
  const begun = performance.now();
  try {
    const answer = await ask(`/api/steps?since=${sequence}&known=${names.length}`);
    take(await answer.json());
    state = times.length ? "live" : "starting";
  } catch (error) {
    state = error.status === 401 ? "token" : "silent";
  }
  changed();
  if (!document.hidden) {
    const left = PERIOD - (performance.now() - begun);
    timer = setTimeout(poll, state === "live" || state === "starting" ? Math.max(left, 200) : 3000);
  }
}

function take(answer) {
  if (answer.sequence < sequence) {
    // The server was started again: what it knows is all there is.
    times.length = 0;
    series.clear();
  }
  sequence = answer.sequence;
  names = answer.series ?? names;
  sources = answer.sources;
  now = answer.now_ms;
  week = answer.week;
  hour.step = week ? week.step_unseen_ms : PERIOD;
  for (const row of answer.rows) {
    // A clock that was set back: what it said before has not been yet, and times only rise.
    while (times.at(-1) >= row[0]) {
      times.pop();
      for (const values of series.values()) values.pop();
    }
    for (const name of names) {
      if (!series.has(name)) series.set(name, new Array(times.length).fill(NaN));
    }
    times.push(row[0]);
    names.forEach((name, at) => series.get(name).push(row[at + 1] ?? NaN));
  }
  if (times.length > KEPT * 1.05) {
    const gone = times.length - KEPT;
    times.splice(0, gone);
    for (const values of series.values()) values.splice(0, gone);
  }
}

/** Chooses what is shown between two moments; asks for it if it is not here. */
export function look([from, to]) {
  const here = times.length && from >= times[0] - 2 * hour.step;
  shown = here || !week?.oldest_ms ? hour : part ?? hour;
  if (here || !week?.oldest_ms || asking) return;
  const step = MINUTE * Math.ceil((to - from) / MINUTE / POINTS);
  // There is a newer minute each minute; of wide steps it changes the last by little.
  const until = Math.min(to, now - Math.max(step / 8, MINUTE));
  if (part && part.from <= from && part.to >= until && part.step <= step * 1.5) return;
  fetchPart(from, to, step);
}

async function fetchPart(from, to, step) {
  asking = true;
  const begun = now;
  try {
    const [first, last] = [Math.floor(from), Math.ceil(Math.min(to, begun))];
    const answer = await ask(`/api/week?from=${first}&to=${last}&points=${POINTS}`);
    part = Steps.told(await answer.json());
    [part.from, part.to] = [from, Math.min(to, begun)];
  } catch {
    // The server has been started again or has gone, which the next question for steps tells.
    part = new Steps([], new Map(), step);
    [part.from, part.to] = [from, begun];
  }
  asking = false;
  changed();
}

/** The last value of a series that was measured within ten seconds of now. */
export function last(name) {
  const values = series.get(name);
  if (!values) return NaN;
  for (let place = values.length - 1; place >= 0 && times[place] > now - 10000; place -= 1) {
    if (!Number.isNaN(values[place])) return values[place];
  }
  return NaN;
}
