// The table of cases: sorted by its headers, filtered by words, op, type and remarks.
const pageRows = 250;

function caseColumns() {
  const varying = (name) => unique(cases.map((c) => c.params[name])).length > 1;
  const axes = unique(cases.flatMap((c) => Object.keys(c.params))).filter((a) => ["type", "m", "n", "k"].includes(a) || varying(a));
  const [unit, scale] = timeUnit(median(cases.map((c) => c.time)) || 1);
  const smallest = Math.min(...cases.map((c) => c.time).filter(isNumber), Infinity) / scale;
  const decimals = Number.isFinite(smallest) ? Math.min(Math.max(2 - Math.floor(Math.log10(smallest)), 0), 3) : 2;
  const fixed = (value, digits) => isNumber(value) ? value.toFixed(digits) : "–";
  const rate = (pick) => { const values = cases.map(pick).filter(isNumber); return values.length && median(values) < 10 ? 2 : 0; };
  const gbps = (c) => isNumber(c.time) ? c.bytes / c.time : null, tflops = (c) => isNumber(c.time) ? c.ops / c.time / 1e3 : null;
  const column = (name, value, more) => ({name, value, show: value, ...more});
  const number = (name, unitText, value, digits, more) => ({name, unit: unitText, num: true, value, show: (c) => fixed(value(c), digits), ...more});
  const columns = [];
  if (unique(cases.map((c) => c.target)).length > 1) { columns.push(column("op", (c) => c.target)); }
  // An axis that few cases have would be a column of dashes.
  const common = (a) => 4 * cases.filter((c) => a in c.params).length >= cases.length;
  const rare = axes.filter((a) => !common(a));
  for (const a of axes.filter(common)) {
    const numeric = cases.every((c) => !(a in c.params) || !Number.isNaN(Number(c.params[a])));
    columns.push({name: a, num: numeric, value: (c) => a in c.params ? (numeric ? Number(c.params[a]) : c.params[a]) : null, show: (c) => c.params[a] || "–"});
  }
  if (rare.length > 0) {
    columns.push(column("other axes", (c) => rare.filter((a) => a in c.params).map((a) => a + "=" + c.params[a]).join(" ")));
  }
  if (cases.some((c) => c.shape)) { columns.push(column("shape", (c) => c.shape || "")); }
  for (const mode of modeAxes) { columns.push(column(mode, (c) => c[mode])); }
  if (unique(cases.map((c) => c.rep)).length > 1) { columns.push(number("rep.", "", (c) => c.rep + 1, 0)); }
  columns.push(number("time", unit, (c) => isNumber(c.time) ? c.time / scale : null, decimals, {button: true}));
  columns.push(number("±", "%", (c) => isNumber(c.halfWidth) ? 100 * c.halfWidth : null, 1));
  if (cases.some((c) => isNumber(kernelTime(c)))) { columns.push(number("kernels", unit, (c) => isNumber(kernelTime(c)) ? kernelTime(c) / scale : null, decimals)); }
  columns.push(number("rate", "GB/s", gbps, rate(gbps)), number("rate", "TFLOP/s", tflops, rate(tflops) || 1));
  if (cases.some((c) => isNumber(c.limit))) { columns.push(number("limit", "%", (c) => isNumber(c.limit) ? 100 * c.limit : null, 0, {share: true})); }
  if (data.changes) {
    const byKey = new Map(data.changes.map((c) => [c.key, c]));
    columns.push({name: "change", unit: "%", num: true, value: (c) => byKey.has(c.key) && isNumber(byKey.get(c.key).change) ? 100 * byKey.get(c.key).change : null,
      show: (c) => byKey.has(c.key) ? signed(byKey.get(c.key).change).replace(" %", "") : "–",
      className: (c) => byKey.has(c.key) ? verdictClass[byKey.get(c.key).verdict] || "" : ""});
  }
  columns.push(number("launches", "", (c) => c.launches, 0), column("kernel", choiceText), column("remarks", remarks, {wrap: true}));
  return columns;
}

function compareBy(column, direction) {
  return (a, b) => {
    const x = column.value(a), y = column.value(b);
    const noX = x === null || x === "" || x === "–", noY = y === null || y === "" || y === "–";
    if (noX || noY) { return noX - noY; }  // what has no value stays last
    return direction * (typeof x === "number" && typeof y === "number" ? x - y : numericOrder(x, y));
  };
}

function caseRow(c, columns, nameAt) {
  return el("tr", {}, columns.map((column, i) => {
    const share = column.share && isNumber(c.limit);
    const classes = [column.num ? "num" : "", share ? "share" : "", column.wrap ? "wrap" : "", column.className ? column.className(c) : ""].join(" ").trim();
    const text = String(column.show(c));
    return el("td", {class: classes || null, style: share ? "--p:" + Math.min(100 * c.limit, 100).toFixed(1) : null},
      i === nameAt ? el("button", {type: "button", class: "row", title: "details of this case", onclick: () => showDetail(c)}, text) : text);
  }));
}

function tableSection() {
  const node = section("table", "Cases", "A header sorts by its column, again for the other direction; a time opens the case with its samples, kernels and the " +
    "command that measures it again. Rates count each operand once; ± is half the confidence interval of the median.");
  const columns = caseColumns(), nameAt = columns.findIndex((c) => c.button);
  const state = {sort: -1, direction: 1, words: "", op: "", type: "", only: "", all: false};
  const head = el("tr"), body = el("tbody"), count = el("span", {class: "sub", role: "status"}), more = el("p", {class: "more"});
  const texts = new Map(cases.map((c) => [c, [c.key, choiceText(c), remarks(c), c.shape || ""].join(" ").toLowerCase()]));
  const keep = (c) => (state.op === "" || c.target === state.op) && (state.type === "" || c.params.type === state.type) &&
    (state.only === "" || (state.only === "remarks" ? remarks(c) !== "" : c.status !== "ok")) &&
    state.words.toLowerCase().split(/\s+/).every((w) => texts.get(c).includes(w));
  const fill = () => {
    const rows = cases.filter(keep);
    if (state.sort >= 0) { rows.sort(compareBy(columns[state.sort], state.direction)); }
    const shown = state.all ? rows : rows.slice(0, pageRows);
    body.replaceChildren(...shown.map((c) => caseRow(c, columns, nameAt)));
    count.textContent = rows.length + " of " + cases.length + " cases";
    more.replaceChildren(...(shown.length < rows.length ? [el("button", {type: "button", onclick: () => { state.all = true; fill(); }}, "Show all " + rows.length + " rows")] : []));
  };
  columns.forEach((column, i) => {
    const mark = el("span", {class: "dir", "aria-hidden": "true"});
    const cell = el("th", {scope: "col", class: column.num ? "num" : null, "aria-sort": "none"}, el("button", {type: "button", onclick: () => {
      state.direction = state.sort === i ? -state.direction : 1;
      state.sort = i;
      [...head.children].forEach((other) => { other.setAttribute("aria-sort", "none"); other.querySelector(".dir").textContent = ""; });
      cell.setAttribute("aria-sort", state.direction > 0 ? "ascending" : "descending");
      mark.textContent = state.direction > 0 ? "▲" : "▼";
      fill();
    }}, column.name, column.unit ? el("span", {class: "unit"}, column.unit) : null, mark));
    head.append(cell);
  });
  const set = (name) => (value) => { state[name] = value; fill(); };
  const search = el("input", {type: "search", placeholder: "q4_K n=1 mmvq", oninput: () => set("words")(search.value)});
  const ops = unique(cases.map((c) => c.target));
  node.append(el("div", {class: "controls"}, el("label", {}, "Filter", search),
    ops.length > 1 ? select("Op", [["", "all"], ...ops.map((o) => [o, o])], set("op")).label : null,
    types.length > 1 ? select("Type", [["", "all"], ...types.map((t) => [t, t])], set("type")).label : null,
    select("Show", [["", "all cases"], ["remarks", "with remarks"], ["failed", "without a figure"]], set("only")).label, count),
  el("div", {class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Table of cases"}, el("table", {}, el("thead", {}, head), body)), more);
  fill();
}
