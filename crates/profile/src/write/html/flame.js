"use strict";
// Draws one flame graph from the data beside it: zoom, search, filters by role and module, time
// slices, difference. Names are outside input: they only ever become textContent or canvas text.
(function () {
  for (const root of document.querySelectorAll(".ogive-flame")) {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    flame(root, data);
  }

  function varints(text) {
    const bytes = atob(text);
    const out = [];
    let value = 0, scale = 1;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes.charCodeAt(i);
      value += (byte & 127) * scale;
      if (byte < 128) { out.push(value); value = 0; scale = 1; } else { scale *= 128; }
    }
    return out;
  }

  function element(parent, tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  function flame(root, data) {
    // Nodes: 0 is the root; a parent has a smaller number than its children.
    const parentGaps = varints(data.nodes.parent), frames = varints(data.nodes.frame);
    const count = parentGaps.length + 1;
    const parent = new Int32Array(count), frame = new Int32Array(count);
    parent[0] = -1; frame[0] = -1;
    for (let i = 1; i < count; i++) { parent[i] = i - parentGaps[i - 1]; frame[i] = frames[i - 1]; }
    const packed = varints(data.samples);
    const samples = packed.length / 4;
    const bucket = new Float64Array(samples), group = new Int32Array(samples);
    const node = new Int32Array(samples), weight = new Float64Array(samples);
    for (let i = 0, last = 0; i < samples; i++) {
      last += packed[4 * i];
      bucket[i] = last; group[i] = packed[4 * i + 1];
      node[i] = packed[4 * i + 2]; weight[i] = packed[4 * i + 3];
    }
    const basePacked = data.base ? varints(data.base.samples) : null;
    const children = Array.from({ length: count }, () => []);
    for (let i = 1; i < count; i++) children[parent[i]].push(i);
    const nameOf = (i) => i === 0 ? "all" : data.frames.name[frame[i]];
    const moduleOf = (i) => i === 0 ? "" : data.modules[data.frames.module[frame[i]]];
    const kindOf = (i) => i === 0 ? "n" : data.frames.kind[frame[i]];
    for (const list of children) list.sort((a, b) => nameOf(a) < nameOf(b) ? -1 : 1);

    let first = null;
    const state = { focus: 0, search: null, group: -1, module: -1, from: 0, to: Infinity, upside: false };
    let self = new Float64Array(count), total = new Float64Array(count);
    let baseTotal = new Float64Array(count), boxes = [], depthMax = 1;

    const bar = element(root, "div", "bar");
    element(bar, "strong", "", data.title);
    const search = element(bar, "input");
    search.placeholder = "search (regular expression)";
    search.setAttribute("aria-label", "search functions");
    const matched = element(bar, "span", "matched");
    const reset = element(bar, "button", "", "reset");
    const flip = element(bar, "button", "", "flip");
    const facts = element(root, "div", "facts", data.facts);
    for (const note of data.notes) element(facts, "div", "note", note);
    const slices = data.columns > 1 ? element(root, "canvas", "slices") : null;
    const sliceText = slices ? element(root, "div", "facts") : null;
    const canvas = element(root, "canvas", "graph");
    canvas.tabIndex = 0;
    // Its place keeps its height: a long name must not move the graph away from under the pointer.
    const detail = element(element(root, "div", "place"), "div", "detail", "\u00a0");
    const tables = element(root, "div", "tables");
    const context = canvas.getContext("2d");

    function measure(amount) {
      if (data.unit === "nanoseconds") return (amount / 1e9).toFixed(2) + " CPU-s";
      return Math.round(amount).toLocaleString() + " " + data.unit;
    }
    const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(2) + "%" : "0%";

    function addUp(totals, selfs) {
      totals.set(selfs);
      for (let i = count - 1; i > 0; i--) totals[parent[i]] += totals[i];
    }

    function leafModule(i) { return i === 0 ? -1 : data.frames.module[frame[i]]; }

    function recount() {
      self = new Float64Array(count);
      const modules = new Float64Array(data.modules.length);
      const groups = new Float64Array(data.groups.length);
      let noStack = 0;
      for (let i = 0; i < samples; i++) {
        if (bucket[i] < state.from || bucket[i] > state.to) continue;
        const module = leafModule(node[i]);
        const inGroup = state.group < 0 || state.group === group[i];
        const inModule = state.module < 0 || state.module === module;
        if (inModule) groups[group[i]] += weight[i];
        if (inGroup) { if (module >= 0) modules[module] += weight[i]; else noStack += weight[i]; }
        if (inGroup && inModule) self[node[i]] += weight[i];
      }
      total = new Float64Array(count);
      addUp(total, self);
      baseTotal = new Float64Array(count);
      if (basePacked) {
        const baseSelf = new Float64Array(count);
        for (let i = 0; i < basePacked.length; i += 3) {
          const module = leafModule(basePacked[i + 1]);
          if ((state.group < 0 || state.group === basePacked[i]) &&
              (state.module < 0 || state.module === module)) baseSelf[basePacked[i + 1]] += basePacked[i + 2];
        }
        addUp(baseTotal, baseSelf);
      }
      showTables(groups, modules);
      draw();
    }

    function showTables(groups, modules) {
      tables.textContent = "";
      const list = (title, names, amounts, chosen, choose, hints) => {
        const table = element(tables, "table");
        const head = element(element(table, "thead"), "tr");
        element(head, "th", "", title);
        element(head, "th", "number", "share");
        element(head, "th", "number", measure(0).replace(/^[0-9.]+ /, ""));
        const body = element(table, "tbody");
        let sum = 0;
        for (const amount of amounts) sum += amount;
        const order = Array.from(amounts.keys()).filter((i) => amounts[i] > 0 || i === chosen);
        order.sort((a, b) => amounts[b] - amounts[a]);
        for (const i of order.slice(0, 40)) {
          const row = element(body, "tr", i === chosen ? "chosen" : "");
          const button = element(element(row, "td"), "button", "link", names[i]);
          if (hints) button.title = hints[i];
          button.onclick = () => choose(i === chosen ? -1 : i);
          element(row, "td", "number", percent(amounts[i], sum));
          element(row, "td", "number", measure(amounts[i]).replace(/ .*$/, ""));
        }
      };
      list("thread role", data.groups, groups, state.group,
        (i) => { state.group = i; recount(); }, data.hints);
      list("module (leaf)", data.modules, modules, state.module,
        (i) => { state.module = i; recount(); }, null);
    }

    function colour(i) {
      if (state.search && state.search.test(nameOf(i))) return "#d63cd6";
      if (basePacked && i > 0) {
        const here = total[0] > 0 ? total[i] / total[0] : 0;
        const before = baseTotal[0] > 0 ? baseTotal[i] / baseTotal[0] : 0;
        const change = Math.max(-1, Math.min(1, (here - before) / Math.max(here, before, 1e-9)));
        const strength = Math.round(235 - 150 * Math.abs(change) * Math.min(1, Math.abs(here - before) * 50 + 0.2));
        return change >= 0 ? `rgb(235,${strength},${strength})` : `rgb(${strength},${strength},235)`;
      }
      const name = nameOf(i);
      let hash = 0;
      for (let c = 0; c < Math.min(name.length, 12); c++) hash = (hash * 31 + name.charCodeAt(c)) % 997;
      const shade = hash / 997;
      switch (kindOf(i)) {
        case "z": return `hsl(${190 + 20 * shade},55%,${66 + 8 * shade}%)`;
        case "k": return `hsl(${22 + 14 * shade},80%,${66 + 8 * shade}%)`;
        case "u": return `hsl(${90 + 40 * shade},45%,${68 + 8 * shade}%)`;
        case "n": return "#cfcfcf";
        default: return `hsl(${45 + 12 * shade},75%,${66 + 8 * shade}%)`;
      }
    }

    function draw(again) {
      const width = Math.max(320, root.clientWidth), line = 17;
      boxes = [];
      const whole = total[state.focus];
      const path = [];
      for (let i = state.focus; i >= 0; i = parent[i]) path.unshift(i);
      path.forEach((i, depth) => boxes.push([i, 0, width, depth, true]));
      depthMax = path.length;
      const waiting = [[state.focus, 0, path.length]];
      while (waiting.length > 0 && whole > 0) {
        const [at, left, depth] = waiting.pop();
        let x = left;
        for (const child of children[at]) {
          const size = total[child] / whole * width;
          if (size >= 0.4) {
            boxes.push([child, x, size, depth, false]);
            depthMax = Math.max(depthMax, depth + 1);
            waiting.push([child, x, depth + 1]);
          }
          x += size;
        }
      }
      const scale = window.devicePixelRatio || 1, height = depthMax * line + 2;
      canvas.width = width * scale; canvas.height = height * scale;
      canvas.style.width = width + "px"; canvas.style.height = height + "px";
      // A graph that outgrows the window brings a scroll bar, which takes its part of the width.
      if (again !== "again" && Math.max(320, root.clientWidth) !== width) return draw("again");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "middle";
      for (const [i, x, size, depth, above] of boxes) {
        const y = state.upside ? height - (depth + 1) * line : depth * line;
        context.globalAlpha = above && i !== state.focus ? 0.55 : 1;
        context.fillStyle = colour(i);
        context.fillRect(x, y, Math.max(size - 0.5, 0.3), line - 1);
        if (size > 26) {
          context.fillStyle = "#111";
          const room = Math.floor((size - 6) / 6);
          const name = nameOf(i);
          context.fillText(name.length > room ? name.slice(0, Math.max(room - 1, 1)) + "\u2026" : name, x + 3, y + line / 2);
        }
      }
      context.globalAlpha = 1;
      showMatched();
      drawSlices();
    }

    function showMatched() {
      if (!state.search) { matched.textContent = ""; return; }
      let sum = 0;
      const under = new Uint8Array(count);
      for (let i = 1; i < count; i++) {
        if (under[parent[i]]) { under[i] = 1; continue; }
        if (total[i] > 0 && state.search.test(nameOf(i))) { under[i] = 1; sum += total[i]; }
      }
      matched.textContent = "matched: " + percent(sum, total[0]);
    }

    function drawSlices() {
      if (!slices) return;
      const cells = new Float64Array(data.columns * data.rows);
      let most = 0;
      for (let i = 0; i < samples; i++) {
        if (state.group >= 0 && state.group !== group[i]) continue;
        if (state.module >= 0 && state.module !== leafModule(node[i])) continue;
        cells[bucket[i]] += weight[i];
        most = Math.max(most, cells[bucket[i]]);
      }
      const width = Math.max(320, root.clientWidth), height = data.rows * 2, pen = slices.getContext("2d");
      slices.width = width; slices.height = height;
      const step = width / data.columns;
      for (let c = 0; c < data.columns; c++) {
        for (let r = 0; r < data.rows; r++) {
          const at = c * data.rows + r, share = most > 0 ? cells[at] / most : 0;
          const chosen = at >= state.from && at <= state.to;
          if (share === 0) continue;
          pen.fillStyle = `hsl(${chosen ? 10 : 220},80%,${92 - 55 * share}%)`;
          pen.fillRect(c * step, height - 2 * (r + 1), Math.ceil(step), 2);
        }
      }
      const seconds = (b) => (b * data.step_ns / 1e9).toFixed(2) + " s";
      sliceText.textContent = state.to === Infinity
        ? "each column " + seconds(data.rows) + ", from the bottom up; click for the start of a slice, again for its end"
        : "slice from " + seconds(state.from) + " to " + seconds(Math.min(state.to, data.columns * data.rows) + 1);
    }

    function boxAt(event) {
      const area = canvas.getBoundingClientRect(), line = 17;
      const x = event.clientX - area.left, y = event.clientY - area.top;
      const depth = Math.floor((state.upside ? area.height - y : y) / line);
      return boxes.find(([, left, size, at]) => at === depth && left <= x && x < left + size);
    }

    canvas.onmousemove = (event) => {
      const box = boxAt(event);
      if (!box) { detail.textContent = "\u00a0"; return; }
      const i = box[0];
      let text = nameOf(i) + (moduleOf(i) ? "  (" + moduleOf(i) + ")" : "") + "  " +
        measure(total[i]) + ", " + percent(total[i], total[0]) + " of all, self " + percent(self[i], total[0]);
      if (basePacked) text += "; before " + percent(baseTotal[i], baseTotal[0]);
      detail.textContent = text;
    };
    canvas.onclick = (event) => {
      const box = boxAt(event);
      if (box) { state.focus = box[0]; draw(); }
    };
    canvas.onkeydown = (event) => {
      if (event.key === "Escape" || event.key === "Backspace") {
        state.focus = event.key === "Escape" ? 0 : Math.max(0, parent[state.focus]); draw();
        event.preventDefault();
      }
    };
    search.oninput = () => {
      try { state.search = search.value ? new RegExp(search.value, "i") : null; search.className = ""; }
      catch (_) { search.className = "bad"; return; }
      draw();
    };
    reset.onclick = () => {
      Object.assign(state, { focus: 0, search: null, group: -1, module: -1, from: 0, to: Infinity });
      first = null; search.value = ""; search.className = ""; recount();
    };
    flip.onclick = () => { state.upside = !state.upside; draw(); };
    if (slices) {
      slices.onclick = (event) => {
        const area = slices.getBoundingClientRect();
        const column = Math.min(data.columns - 1, Math.floor((event.clientX - area.left) / area.width * data.columns));
        const row = Math.min(data.rows - 1, Math.floor((area.bottom - event.clientY) / area.height * data.rows));
        const at = column * data.rows + row;
        if (first === null) {
          first = at; state.from = at; state.to = at;
        } else {
          state.from = Math.min(first, at); state.to = Math.max(first, at); first = null;
        }
        recount();
      };
    }
    window.addEventListener("resize", draw);
    recount();
  }
})();
