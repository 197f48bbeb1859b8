// Time and throughput against the number of columns, with the points where the table switches to another kernel.
const sweepParts = (c) => Object.entries(c.params).filter(([name]) => name !== growing(c) && name !== "type");
const sweepShape = (c) => [c.target, ...sweepParts(c).map(([k, v]) => k + " = " + v)].join("  ");
const sweepSeries = (c) => [c.params.type, modeText(c)].filter(Boolean).join(" ");

function sweepGroups() {
  const groups = new Map();
  for (const c of cases) {
    if (growing(c) === null || !isNumber(c.time)) { continue; }
    const shape = sweepShape(c);
    if (!groups.has(shape)) { groups.set(shape, []); }
    groups.get(shape).push(c);
  }
  return [...groups].filter(([, list]) => unique(list.map((c) => c.params[growing(c)])).length > 1);
}

const metrics = {
  time: {title: "time", axis: "time of one op, µs", of: (c) => c.time / 1e3, text: (c) => time(c.time)},
  tflops: {title: "TFLOP/s", axis: "TFLOP/s", of: (c) => c.ops / c.time / 1e3, text: (c) => figure(c.ops / c.time / 1e3) + " TFLOP/s"},
  gbps: {title: "GB/s", axis: "GB/s of compulsory bytes", of: (c) => c.bytes / c.time, text: (c) => figure(c.bytes / c.time) + " GB/s"},
  limit: {title: "% of the limit", axis: "% of the limit", of: (c) => 100 * c.limit, text: (c) => percent(c.limit) + " of the limit"},
};

// One point per number of columns: repetitions are joined by their median.
function sweepPoints(list, metric) {
  const byN = new Map();
  for (const c of list) {
    const n = Number(c.params[growing(c)]);
    if (isNumber(metric.of(c))) { byN.set(n, [...(byN.get(n) || []), c]); }
  }
  return [...byN].sort((a, b) => a[0] - b[0]).map(([n, same]) => ({x: n, y: median(same.map(metric.of)), c: same[0]}));
}

function switchesOf(list) {
  const keys = new Set(list.map((c) => c.key));
  return data.switches.filter((s) => keys.has(s.before) && keys.has(s.after));
}

// `marked`: the series whose switch points are drawn.
function sweepConfig(list, metric, hidden, marked) {
  const series = unique(list.map(sweepSeries));
  const shown = series.filter((s) => !hidden.has(s));
  const n = unique(list.map((c) => Number(c.params[growing(c)])));
  const lines = [];
  if (shown.includes(marked)) {
    for (const point of switchesOf(list.filter((c) => sweepSeries(c) === marked))) {
      lines.push({x: point.low, x2: point.high, colour: colourAt(series.indexOf(marked)),
        text: point.from.split(" ")[0] === point.to.split(" ")[0] ? "" : "→ " + point.to.split(" ")[0]});
    }
  }
  return {
    type: "line",
    data: {datasets: shown.map((s) => ({
      label: s, data: sweepPoints(list.filter((c) => sweepSeries(c) === s), metric),
      borderColor: colourAt(series.indexOf(s)), backgroundColor: colourAt(series.indexOf(s)), borderWidth: s === marked ? 3 : 1.5,
      pointRadius: 4, pointHoverRadius: 6,
      pointStyle: (p) => p.raw ? markers[Math.max(families.indexOf(p.raw.c.family), 0) % markers.length] : "circle",
    }))},
    options: {
      onClick: openOnClick, interaction: {mode: "nearest", intersect: true},
      scales: {
        x: columnAxis(growing(list[0]), n),
        y: metric === metrics.limit ? {title: {display: true, text: metric.axis}, min: 0, suggestedMax: 100, grid: {color: colour("grid")}} : logAxis(metric.axis),
      },
      plugins: {
        marks: {lines},
        tooltip: {callbacks: {title: (t) => t.length ? growing(t[0].raw.c) + " = " + t[0].raw.x : "", label: (t) => [t.dataset.label + ": " + metric.text(t.raw.c), choiceText(t.raw.c)]}},
      },
    },
  };
}

function switchTable(list) {
  const rows = switchesOf(list).map((s) => {
    const c = list.find((x) => x.key === s.before);
    return [s.exact ? growing(c) + " = " + s.high : s.low + " < " + growing(c) + " ≤ " + s.high, s.from, s.to,
      s.exact ? "the dispatch table" : "what ran at the measured neighbours"];
  });
  if (rows.length === 0) { return el("p", {class: "why"}, "One kernel and configuration serves every size here."); }
  return table([{text: "switches at", num: true}, {text: "from"}, {text: "to"}, {text: "known from"}], rows);
}

function sweepSection() {
  const groups = sweepGroups();
  if (groups.length === 0) { return; }
  const node = section("sweep", "Time and throughput against columns", "Time that stays flat with more columns is bound by reading the " +
    "weights. Dashed lines are the points where the dispatch table switches to another kernel; a step there means that the table switches too early or too late.", "Against columns");
  let list = groups[0][1], metric = metrics.tflops, marked = "";
  const hidden = new Set();
  const left = chartBox("Time of one op", () => sweepConfig(list, metrics.time, hidden, marked));
  const right = chartBox("Throughput", () => sweepConfig(list, metric, hidden, marked));
  const keys = el("div"), switches = el("div");
  const draw = () => { left.draw(); right.draw(); };
  const note = () => switches.replaceChildren(el("h3", {}, "Switch points" + (marked ? " of " + marked : "")),
    switchTable(list.filter((c) => sweepSeries(c) === marked)));
  const mark = select("Switch points of", [], (s) => { marked = s; note(); draw(); });
  const fill = () => {
    const series = unique(list.map(sweepSeries));
    hidden.clear();
    left.name("Time of one op: " + sweepShape(list[0]));
    right.name("Throughput: " + sweepShape(list[0]));
    keys.replaceChildren(legend(series.map((s, i) => ({key: s, text: s || "all", colour: colourAt(i)})), hidden, draw));
    marked = series.find((s) => switchesOf(list.filter((c) => sweepSeries(c) === s)).length > 0) || series[0];
    mark.box.replaceChildren(...series.map((s) => el("option", {value: s}, s || "all")));
    mark.box.value = marked;
    note();
    draw();
  };
  const shape = select("Shape", groups.map(([name], i) => [i, name]), (i) => { list = groups[Number(i)][1]; fill(); });
  const unit = select("Throughput in", ["tflops", "gbps", "limit"].map((m) => [m, metrics[m].title]), (m) => { metric = metrics[m]; right.draw(); });
  node.append(el("div", {class: "controls"}, shape.label, mark.label, unit.label), keys, el("div", {class: "pair"}, left.node, right.node), switches);
  fill();
}

// ---- choice map: which kernel the table takes, rows by columns, one block per type ----
function mapCell(cell) {
  if (!cell) { return el("td", {class: "none"}, ""); }
  const title = cell.family + (cell.config ? " " + cell.config : "") + (cell.c ? ": " + time(cell.c.time) : ": by the table, not measured");
  return el("td", {class: cell.c ? null : "table-only", style: "--cell:" + familyColour(cell.family), title}, cell.family,
    el("small", {}, cell.c && isNumber(cell.c.limit) ? percent(cell.c.limit) : cell.c ? time(cell.c.time) : "\u00a0"));
}

function mapOf(type) {
  const cells = new Map();
  for (const m of data.map.filter((x) => x.type === type)) { cells.set(m.m + "|" + m.k + "|" + m.n, m); }
  for (const c of cases) {
    if (c.params.type === type && c.variant === "auto" && c.family && "m" in c.params && "n" in c.params) {
      cells.set(c.params.m + "|" + c.params.k + "|" + c.params.n, {family: c.family, config: c.config, c});
    }
  }
  const keys = [...cells.keys()].map((k) => k.split("|"));
  const rows = unique(keys.map((k) => k[0] + "|" + k[1])).sort((a, b) => numericOrder(a.split("|")[0], b.split("|")[0]) || numericOrder(a.split("|")[1], b.split("|")[1]));
  const columns = unique(keys.map((k) => k[2])).sort(numericOrder);
  return el("div", {class: "scroll"}, el("table", {class: "map"},
    el("caption", {class: "sub", style: "text-align:left;padding:0.3rem 0.4rem"}, type),
    el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "m × k \\ n"), columns.map((n) => el("th", {scope: "col"}, n)))),
    el("tbody", {}, rows.map((r) => el("tr", {}, el("th", {scope: "row"}, r.replace("|", " × ")),
      columns.map((n) => mapCell(cells.get(r + "|" + n))))))));
}

function mapSection() {
  const mapped = unique(cases.filter((c) => c.params.type && "m" in c.params && "n" in c.params && c.family && c.variant === "auto").map((c) => c.params.type));
  if (mapped.length === 0) { return; }
  const node = section("map", "Choice map", "Which kernel family runs for m rows, n columns and length k. The percentage is the fraction of the " +
    "limit; a low one beside a switch says that a better boundary or kernel is missing. Dashed: what the profile would choose, not measured here.");
  const body = el("div");
  const fill = (type) => body.replaceChildren(...(type === "" ? mapped : [type]).map(mapOf));
  const chooser = select("Type", [...(mapped.length > 1 ? [["", "all types"]] : []), ...mapped.map((t) => [t, t])], fill);
  node.append(el("div", {class: "controls"}, chooser.label, ...families.map((f) => el("span", {class: "sub"},
    el("span", {class: "swatch", style: "background:" + familyColour(f)}), " " + f))), body);
  chooser.box.value = mapped.length > 4 ? mapped[0] : chooser.box.value;
  fill(chooser.box.value);
}
