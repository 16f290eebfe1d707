// Steps: moments, and for each series a value at each moment. Values of the week are means, and also
// have a minimum and a maximum.

/** The least distance in milliseconds up to which a moment belongs to its nearest step. */
const NEAR = 5000;
/** The least gap in milliseconds: steps further apart are not joined. */
const GAP = 3500;

export class Steps {
  constructor(times, series, step, low = new Map(), high = new Map()) {
    Object.assign(this, { times, series, step, low, high });
  }

  /** From an answer of the server. */
  static from(answer) {
    const column = (name) => new Map(Object.entries(answer.series)
      .filter(([, columns]) => columns[name])
      .map(([series, columns]) => [series, columns[name].map((value) => value ?? NaN)]));
    return new Steps(answer.times, column("mean"), answer.step_ms, column("min"), column("max"));
  }

  get gap() {
    return Math.max(GAP, this.step * 2.5);
  }

  has(name) {
    return this.series.has(name);
  }

  get(name) {
    return this.series.get(name);
  }

  /** The place of the first step at or after a moment. */
  at(time) {
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The place of the step nearest to a moment, or -1 if there is none near. */
  nearest(time) {
    const after = this.at(time);
    const before = after - 1;
    const { times } = this;
    const near = after < times.length && (before < 0 || times[after] - time < time - times[before])
      ? after : before;
    const far = Math.max(NEAR, this.step * 1.5);
    return near >= 0 && Math.abs(times[near] - time) <= far ? near : -1;
  }
}
