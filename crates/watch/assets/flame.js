// Flame graphs: one click takes a profile. A frame that can only draw shows it, alone or compared
// with an earlier one.

import { element } from "/chart.js";
import * as data from "/data.js";
import { chooser, during } from "/doctor.js";
import { clock } from "/format.js";

const SECONDS = 10;
const FORMS = [["svg", "SVG"], ["html", "HTML"], ["folded", "folded"], ["pprof", "pprof"]];

export class Flame {
  constructor(root) {
    this.profiles = [];
    this.busy = false;
    this.shown = "";
    this.asked = false;
    this.source = chooser("Whose stacks");
    this.threads = element("input", { type: "text", placeholder: "all threads", size: 16,
      "aria-label": "Only threads whose name matches this expression", maxlength: 200,
      spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
    this.sample = element("button", { type: "button", class: "main", onclick: () => this.take() },
      `Sample ${SECONDS} s`);
    this.status = element("p", { role: "status", class: "quiet" });
    this.which = element("select", { onchange: () => this.draw() });
    this.base = element("select", { onchange: () => this.draw() });
    this.files = element("span", { class: "files" });
    this.bar = element("div", { class: "controls", hidden: "" },
      element("label", {}, "Show ", this.which), element("label", {}, "compared with ", this.base),
      this.files);
    this.frame = element("iframe", { title: "Flame graph", sandbox: "allow-scripts", hidden: "" });
    this.empty = element("div", { class: "empty" }, element("h3", {}, "No profile yet"),
      element("p", {}, `“Sample” takes the stacks of running threads 99 times a second, for
        ${SECONDS} seconds: of the whole host, of the daemon of a mount, or of threads by name, such
        as z_rd_int.*. Kernel stacks need root.`));
    root.append(element("section", { "aria-labelledby": "flame-title" },
      element("header", {}, element("h2", { id: "flame-title" }, "Flame graph")),
      element("div", { class: "controls" }, this.source.select, this.threads, this.sample),
      this.status, this.bar, this.empty, this.frame));
  }

  draw() {
    this.source.update();
    this.sample.disabled = this.busy;
    if (!this.asked) {
      this.asked = true;
      this.list();
    }
    const profile = this.profiles.find((one) => one.id === this.which.value);
    this.bar.hidden = this.frame.hidden = !profile;
    this.empty.hidden = Boolean(profile);
    if (!profile) return;
    const base = this.base.value && this.base.value !== profile.id ? `&base=${this.base.value}` : "";
    const address = `/flame?id=${profile.id}${base}`;
    if (this.shown === address) return;
    this.shown = address;
    this.frame.src = address;
    this.files.replaceChildren("Save as ", ...FORMS.map(([form, name]) => element("a", {
      class: "button", href: `/flame/file?id=${profile.id}&as=${form}`, download: "" }, name)));
  }

  /** Loads the profiles that were taken before this page was opened. */
  async list() {
    try {
      this.profiles = await (await data.ask("/api/profiles")).json();
      this.choices();
    } catch {
      // Without the token no profile can be shown; "Sample" then reports that.
    }
  }

  choices() {
    const options = () => this.profiles.toReversed().map((one) => element("option",
      { value: one.id }, `${clock(one.time_ms)}, ${one.title}, ${one.samples} samples`));
    const chosen = this.base.value;
    this.which.replaceChildren(...options());
    this.base.replaceChildren(element("option", { value: "" }, "nothing"), ...options());
    if (this.profiles.some((one) => one.id === chosen)) this.base.value = chosen;
    this.draw();
  }

  async take() {
    this.busy = true;
    this.draw();
    const query = new URLSearchParams({ source: this.source.select.value || "host",
      threads: this.threads.value.trim(), seconds: SECONDS });
    const answer = await during(this.status, "sampling", SECONDS,
      () => data.ask(`/api/profile?${query}`, { method: "POST" }));
    this.busy = false;
    if (answer) {
      const profile = await answer.json();
      this.profiles = [...this.profiles, profile].slice(-8);
      this.choices();
    } else this.draw();
  }
}
