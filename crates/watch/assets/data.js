// The measured steps: fetched once a second while the page is visible. If the server keeps a week,
// also the shown part of the week.
//
// One array has the times, and each series has as many values; a missing value is NaN.

import { Steps } from "/steps.js";

const KEPT = 3600;
const MINUTE = 60000;
/** Points of the week that a chart has room for. */
const POINTS = 400;
const PERIOD = 1000;

export const times = [];
export const series = new Map();
/** The week that the server keeps: its oldest time and its steps; null without one. */
export let week = null;
/** The shown steps: the last hour, or a part of the week. */
export let shown = new Steps(times, series, PERIOD);
export let sources = [];
/** The state of the page: "starting", "live", "silent" (no answer) or "token" (missing). */
export let state = "starting";
/** The time of the last answer, by the server's clock. */
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

/** Sends a request to the server; throws its message if it refuses. */
export async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { ...fields(), ...options.headers } });
  if (!answer.ok) {
    const error = new Error((await answer.text()).trim());
    error.status = answer.status;
    throw error;
  }
  return answer;
}

/** Starts to poll; calls back after each answer and each failure. */
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
    // The server was started again, so the steps of the earlier one are dropped.
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
    // After a clock was set back, steps with a later time go, because times only rise.
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

/** Chooses the shown steps between two moments; fetches them if they are missing. */
export function look([from, to]) {
  const here = times.length && from >= times[0] - 2 * hour.step;
  shown = here || !week?.oldest_ms ? hour : part ?? hour;
  if (here || !week?.oldest_ms || asking) return;
  const step = MINUTE * Math.ceil((to - from) / MINUTE / POINTS);
  // A new minute comes each minute, but it changes the last of wide steps only a little.
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
    part = Steps.from(await answer.json());
    [part.from, part.to] = [from, Math.min(to, begun)];
  } catch {
    // The server was started again or has ended; the next poll finds out.
    part = new Steps([], new Map(), step);
    [part.from, part.to] = [from, begun];
  }
  asking = false;
  changed();
}

/** The last value of a series, if it is at most ten seconds old. */
export function last(name) {
  const values = series.get(name);
  if (!values) return NaN;
  for (let place = values.length - 1; place >= 0 && times[place] > now - 10000; place -= 1) {
    if (!Number.isNaN(values[place])) return values[place];
  }
  return NaN;
}
