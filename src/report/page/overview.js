// What to know first: is everything right, how far from the limits, and where it is worst.
function tile(label, value, unit, hint, className) {
  return el("div", {class: "tile"}, el("div", {class: "label"}, label),
    el("div", {class: "value " + (className || "")}, value, unit ? el("span", {class: "unit"}, " " + unit) : null),
    hint ? el("div", {class: "hint"}, hint) : null);
}

function caseTiles() {
  const timed = cases.filter((c) => isNumber(c.time));
  const problems = cases.filter((c) => c.status !== "ok");
  const wrong = cases.filter((c) => c.status === "wrong").length;
  const unverified = timed.filter((c) => !c.check).length;
  const tiles = [tile("Cases measured", String(timed.length), "of " + cases.length,
    problems.length === 0 ? "none failed" : problems.length + " without a figure", problems.length ? "warn" : "")];
  tiles.push(wrong > 0 ? tile("Correctness", wrong + " wrong", "", "differ from the reference; not timed", "bad")
    : tile("Correctness", unverified === 0 ? "all checked" : unverified + " unchecked", "", "against the reference",
      unverified === 0 ? "good" : "warn"));
  return tiles;
}

function limitTiles() {
  const tiles = [];
  const fractions = cases.map((c) => c.limit).filter(isNumber);
  if (fractions.length > 0) {
    const below = fractions.filter((f) => f < 0.5).length;
    tiles.push(tile("Of the machine's limit", (100 * median(fractions)).toFixed(0), "% (median)",
      below + " of " + fractions.length + " below half of it"));
  }
  if (isNumber(run.limits.read)) {
    tiles.push(tile("Read bandwidth", figure(run.limits.read / 1e12), "TB/s", "measured in this run"));
  }
  if (isNumber(run.limits.gemm)) {
    tiles.push(tile("Matrix rate", figure(run.limits.gemm / 1e12), "TFLOP/s", run.limits.gemmText || "measured in this run"));
  }
  const noise = cases.map((c) => c.halfWidth).filter(isNumber);
  if (noise.length > 0) {
    tiles.push(tile("Uncertainty", "± " + figure(100 * median(noise), 2), "%", "median half width of the interval"));
  }
  return tiles;
}

function changeTiles() {
  if (!data.changes) { return []; }
  const count = (verdict) => data.changes.filter((c) => c.verdict === verdict).length;
  const regressed = count("regressed"), improved = count("improved");
  return [tile("Against the baseline", regressed + " slower", "", improved + " faster, of " + data.changes.length + " compared",
    regressed > 0 ? "bad" : improved > 0 ? "good" : "")];
}

function notices() {
  const lines = [];
  if (!run.complete) { lines.push("This run is not complete: " + (run.reason || "it was interrupted") + ". The cases shown are valid."); }
  if (run.device.emulated) { lines.push("Emulated device: the times are those of a program on the CPU and say nothing about a GPU."); }
  if (run.limits.note && !run.device.emulated) { lines.push("Limits: " + run.limits.note + "."); }
  for (const w of run.profile.warnings) { lines.push("Profile: " + w); }
  return lines.map((text) => el("p", {class: "notice"}, text));
}

// Where the most time could be won: time above what the limits allow.
function worstList() {
  const rows = cases.filter((c) => isNumber(c.limit) && isNumber(c.time) && c.limit < 1)
    .sort((a, b) => a.limit - b.limit).slice(0, 5);
  if (rows.length === 0) { return []; }
  return [el("h3", {}, "Furthest from the limit"), el("ul", {class: "worst"}, rows.map((c) => el("li", {},
    rowButton(c, caseName(c)),
    el("span", {class: "num"}, percent(c.limit, c.limit < 0.1 ? 1 : 0) + " of the limit · " + time(c.time) + " · " + choiceText(c)))))];
}

// Each remark once, with the cases it is about.
function problemList() {
  const groups = new Map();
  for (const c of cases) {
    const texts = c.status === "ok" ? c.flags : [remarks(c)];
    for (const text of texts) { groups.set(text, [...(groups.get(text) || []), c]); }
  }
  if (groups.size === 0) { return []; }
  const bad = (list) => list.some((c) => c.status !== "ok");
  const most = median(cases.map((c) => shortName(c).length)) > 24 ? 2 : 3;
  const lines = [...groups].sort((a, b) => bad(b[1]) - bad(a[1]) || b[1].length - a[1].length).slice(0, 12);
  return [el("h3", {}, "To know before quoting a figure"), el("ul", {class: "worst"}, lines.map(([text, list]) => el("li", {},
    el("span", {class: bad(list) ? "bad" : "warn"}, text + (list.length > 1 ? " (" + list.length + " cases)" : "")),
    el("span", {class: "num"}, list.slice(0, most).flatMap((c, i) => [i > 0 ? ", " : "", rowButton(c, shortName(c))]),
      list.length > most ? " …" : "")))),
  ...(groups.size > lines.length ? [el("p", {class: "sub"}, (groups.size - lines.length) + " other remarks are in the table")] : [])];
}

// Without what all cases share.
const shared = new Set(Object.keys(cases.length ? cases[0].params : {}).filter((name) => unique(cases.map((c) => c.params[name])).length === 1));
const manyOps = unique(cases.map((c) => c.target)).length > 1;
const shortName = (c) => [...(manyOps ? [c.target] : []), ...Object.entries(c.params).filter(([k]) => !shared.has(k)).map(([k, v]) => k === "type" ? v : k + "=" + v)].join(" ") || caseName(c);

const remarks = (c) => (c.status === "ok" ? [] : [c.status.replaceAll("_", " ") + (c.message ? ": " + c.message : "")]).concat(c.flags).join(", ");

function rowButton(c, text) {
  return el("button", {type: "button", class: "row", style: "all:unset;cursor:pointer;color:var(--accent)", onclick: () => showDetail(c)}, text);
}

function overview() {
  const node = section("overview", "Overview", "Time is the median of one op over all samples; the limit is what this machine's own " +
    "memory and matrix rates, measured in the same run, would allow.");
  node.append(...notices(), el("div", {class: "tiles"}, caseTiles(), changeTiles(), limitTiles()), ...worstList(), ...problemList());
}
