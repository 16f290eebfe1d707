// Steps: moments, and of each series a value at each. Those of the week are means, and have the least
// and the greatest besides.

/** How far beside a step a moment may be and still be told by it, in milliseconds, at least. */
const NEAR = 5000;
/** Steps further apart than this, at least, are not joined: nothing was measured between. */
const GAP = 3500;

export class Steps {
  constructor(times, series, step, low = new Map(), high = new Map()) {
    Object.assign(this, { times, series, step, low, high });
  }

  /** Out of an answer of the server. */
  static told(answer) {
    const column = (name) => new Map(Object.entries(answer.series)
      .filter(([, told]) => told[name])
      .map(([series, told]) => [series, told[name].map((value) => value ?? NaN)]));
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
