// Numbers with their units, for people, as short as possible.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL = ["", "k", "M", "G", "T"];

/** Three significant digits. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value, base, names) {
  let step = 0;
  while (Math.abs(value) >= base * 0.9995 && step < names.length - 1) {
    value /= base;
    step += 1;
  }
  return [digits(value), names[step]];
}

const writers = {
  percent: (value) => `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`,
  bytes: (value) => scaled(value, 1024, BINARY).join(" "),
  "bytes/s": (value) => `${scaled(value, 1024, BINARY).join(" ")}/s`,
  "per second": (value) => `${scaled(value, 1000, DECIMAL).join("")}/s`,
  count: (value) => scaled(value, 1000, DECIMAL).join(""),
  ms: (value) => value >= 1000 ? `${digits(value / 1000)} s`
    : value >= 1 || value === 0 ? `${digits(value)} ms` : `${digits(value * 1000)} µs`,
};

/** A value with its unit; a dash for a missing value. */
export function format(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return writers[unit](value);
}

/** A value at a scale: round numbers have no decimals. */
export function mark(value, unit) {
  return format(value, unit).replace(/\.0+(?= )/, "");
}

/** Time of day of a moment in milliseconds. */
export function clock(time, withSeconds = true) {
  const date = new Date(time);
  const part = (number) => String(number).padStart(2, "0");
  const text = `${part(date.getHours())}:${part(date.getMinutes())}`;
  return withSeconds ? `${text}:${part(date.getSeconds())}` : text;
}

/** The day of a moment, such as 24 Nov. */
export function day(time) {
  return new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** The day and the minute of a moment. */
export function moment(time) {
  return `${day(time)} ${clock(time, false)}`;
}

/** The next round number of the unit, as the end of a scale. */
export function roundUp(value, unit) {
  if (!(value > 0)) return 1;
  const base = unit.startsWith("bytes") ? 1024 : 10;
  const power = base ** Math.floor(Math.log(value) / Math.log(base) + 1e-9);
  const steps = base === 10 ? [1, 2, 5, 10]
    : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024];
  return power * steps.find((step) => step * power >= value * 0.999);
}
