// Data, elements and numbers that every part of the page uses.
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const run = runs[runs.length - 1];
const cases = data.cases;

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) {
      node.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

const isNumber = (v) => typeof v === "number" && Number.isFinite(v);

// Three significant digits, never in exponent form.
function figure(value, digits = 3) {
  if (!isNumber(value)) { return "–"; }
  if (value === 0) { return "0"; }
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.min(Math.max(digits - 1 - magnitude, 0), 9));
}

const timeUnits = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];

function timeUnit(ns) {
  for (let i = timeUnits.length - 1; i > 0; --i) {
    if (ns >= timeUnits[i][1]) { return timeUnits[i]; }
  }
  return timeUnits[0];
}

function time(ns) {
  if (!isNumber(ns)) { return "–"; }
  const [name, scale] = timeUnit(ns);
  return figure(ns / scale) + " " + name;
}

function bytes(value) {
  if (!isNumber(value)) { return "–"; }
  const units = ["B", "kB", "MB", "GB", "TB"];
  const i = value > 0 ? Math.min(Math.max(Math.floor(Math.log10(value) / 3), 0), 4) : 0;
  return figure(value / 1000 ** i) + " " + units[i];
}

const percent = (fraction, digits = 0) => isNumber(fraction) ? (100 * fraction).toFixed(digits) + " %" : "–";
const signed = (fraction) => isNumber(fraction) ? (fraction >= 0 ? "+" : "−") + Math.abs(100 * fraction).toFixed(1) + " %" : "–";

function median(values) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  if (sorted.length === 0) { return null; }
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const unique = (values) => [...new Set(values)];

function numericOrder(a, b) {
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? String(a).localeCompare(String(b), "en", {numeric: true}) : x - y;
}

// The axis that grows with the number of tokens, by op.
const growing = (c) => ["n", "tokens", "kv", "ne1"].find((name) => name in c.params) || null;

const choiceText = (c) => c.family ? c.family + (c.config ? " " + c.config : "") : "–";
const caseName = (c) => [c.target, ...Object.entries(c.params).map(([k, v]) => k === "type" ? v : k + " = " + v)].join("  ");

// The same on two lines, for the axis of a chart.
const chartName = (c) => [[c.target, c.params.type].filter(Boolean).join(" "),
  Object.entries(c.params).filter(([k]) => k !== "type").map(([k, v]) => k + "=" + v).concat(modeText(c) || []).join(" ")].filter(Boolean);

// A kernel may be started while the one in front of it still runs; what it then waits is no time of its own.
const ownTime = (k) => isNumber(k.time) ? Math.max(k.time + Math.min(k.gap || 0, 0), 0) : null;
const idleBefore = (k) => Math.max(k.gap || 0, 0);
const hasTrace = (c) => c.kernels.some((k) => isNumber(k.time));
const kernelTime = (c) => hasTrace(c) ? c.kernels.reduce((sum, k) => sum + (ownTime(k) || 0), 0) : c.kernel;
const idleTime = (c) => hasTrace(c) ? c.kernels.reduce((sum, k) => sum + idleBefore(k), 0) : c.gap;

// "cold, graph, fusion off": what distinguishes rows beside op, sizes and type, where it differs in this result.
const modeAxes = ["variant", "launch", "fusion", "cache"].filter((m) => unique(cases.map((c) => c[m])).length > 1);
const modeText = (c) => modeAxes.map((m) => m === "fusion" ? "fusion " + c[m] : c[m]).join(", ");

// `short`: its name in the navigation.
function section(id, title, why, short) {
  const node = el("section", {id, "data-nav": short || title}, el("h2", {}, title), el("p", {class: "why"}, why));
  document.getElementById("main").append(node);
  return node;
}

function select(label, options, change) {
  const box = el("select", {onchange: () => change(box.value)},
    options.map(([value, text]) => el("option", {value}, text)));
  return {label: el("label", {}, label, box), box};
}

function table(headers, rows, className) {
  const cell = (tag, h, content) => el(tag, {class: h.num ? "num" : null, scope: tag === "th" ? "col" : null}, content);
  return el("div", {class: "scroll"}, el("table", {class: className || null},
    el("thead", {}, el("tr", {}, headers.map((h) => cell("th", h, h.text)))),
    el("tbody", {}, rows.map((r) => el("tr", {}, r.map((content, i) => cell("td", headers[i], content)))))));
}
