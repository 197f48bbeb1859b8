// Chart.js in the colours of the page: made again when the colour scheme changes, resized for print.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const colours = 14;
const colourAt = (i) => colour("c" + (i % colours));
const markers = ["circle", "rect", "triangle", "rectRot", "star", "crossRot", "rectRounded", "cross"];

const families = unique(cases.map((c) => c.family).filter(Boolean));
const types = unique(cases.map((c) => c.params.type).filter(Boolean));
const familyColour = (family) => colourAt(Math.max(families.indexOf(family), 0));
const typeColour = (type) => colourAt(Math.max(types.indexOf(type), 0));

const drawn = [];  // {canvas, make, chart}

Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
Chart.defaults.font.size = 12;
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.plugins.legend.display = false;  // ours can be used with a keyboard
Chart.defaults.plugins.tooltip.displayColors = false;

// A figure with a canvas; `make` returns a Chart.js configuration and is called again whenever it has to be redrawn.
function chartBox(label, make, wide) {
  const canvas = el("canvas", {role: "img", "aria-label": label});
  const entry = {canvas, make, chart: null};
  drawn.push(entry);
  const caption = el("figcaption", {}, label);
  return {
    name(text) {
      caption.textContent = text;
      canvas.setAttribute("aria-label", text);
    },
    node: el("figure", {}, caption, el("div", {class: wide ? "plot wide" : "plot"}, canvas)),
    entry,
    draw() { redraw(entry); },
  };
}

function redraw(entry) {
  if (entry.chart) { entry.chart.destroy(); }
  Chart.defaults.color = colour("soft");
  Chart.defaults.borderColor = colour("grid");
  entry.chart = new Chart(entry.canvas, entry.make());
}

function drop(entry) {
  if (entry.chart) { entry.chart.destroy(); }
  drawn.splice(drawn.indexOf(entry), 1);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(redraw));

// On paper: light colours and the width of a page.
addEventListener("beforeprint", () => {
  document.documentElement.dataset.print = "";
  for (const entry of drawn) {
    redraw(entry);
    entry.chart.resize(680, entry.canvas.parentNode.clientHeight);
  }
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.print;
  drawn.forEach(redraw);
});

// Lines and labels only at the first, second and fifth of a decade.
function logAxis(title, extra) {
  const plain = (value) => {
    const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    return [1, 2, 5].some((d) => Math.abs(digit - d) < 1e-6);
  };
  return {
    type: "logarithmic",
    title: {display: true, text: title},
    afterBuildTicks: (axis) => { axis.ticks = axis.ticks.filter((t) => plain(t.value)); },
    ticks: {autoSkip: true, autoSkipPadding: 8, maxRotation: 0, callback: (value) => tickText(value)},
    grid: {color: colour("grid")},
    ...extra,
  };
}

function tickText(value) {
  if (value >= 1e4) { return value / 1000 + "k"; }
  return String(Number(value.toPrecision(3)));
}

// Columns: powers of two are what people measure.
function columnAxis(title, values) {
  const shown = new Set(values);
  return {
    type: "logarithmic", title: {display: true, text: title}, grid: {color: colour("grid")},
    min: Math.min(...values) / 1.15, max: Math.max(...values) * 1.15,
    afterBuildTicks: (axis) => { axis.ticks = [...shown].sort((a, b) => a - b).map((value) => ({value})); },
    ticks: {autoSkip: true, autoSkipPadding: 6, maxRotation: 0, callback: (value) => String(value)},
  };
}

// A legend of buttons that show and hide. `items`: [{key, text, colour}]; `hidden`: the set that they change.
function legend(items, hidden, change) {
  const list = el("ul", {class: "legend"});
  for (const item of items) {
    const button = el("button", {type: "button", "aria-pressed": String(!hidden.has(item.key)), onclick: () => {
      if (!hidden.delete(item.key)) { hidden.add(item.key); }
      button.setAttribute("aria-pressed", String(!hidden.has(item.key)));
      change();
    }}, el("span", {class: "swatch", style: "background:" + item.colour}), item.text);
    list.append(el("li", {}, button));
  }
  return list;
}

// Vertical lines with a text: options.plugins.marks.lines = [{x, x2, text, colour}]; x2: anywhere between the two.
const marksPlugin = {
  id: "marks",
  afterDatasetsDraw(chart, args, options) {
    const area = chart.chartArea, context = chart.ctx;
    (options.lines || []).forEach((line, i) => {
      const x = chart.scales.x.getPixelForValue(line.x);
      if (x < area.left || x > area.right) { return; }
      context.save();
      if (line.x2 > line.x) {
        const end = Math.min(chart.scales.x.getPixelForValue(line.x2), area.right);
        context.globalAlpha = 0.1;
        context.fillStyle = line.colour;
        context.fillRect(x, area.top, end - x, area.bottom - area.top);
        context.globalAlpha = 1;
      }
      context.strokeStyle = line.colour;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(x, area.top);
      context.lineTo(x, area.bottom);
      context.stroke();
      if (line.text) {
        context.fillStyle = line.colour;
        context.font = "11px " + Chart.defaults.font.family;
        const width = context.measureText(line.text).width;
        context.fillText(line.text, x + 4 + width > area.right ? x - width - 4 : x + 4, area.top + 12 + 14 * (i % 4));
      }
      context.restore();
    });
  },
};
Chart.register(marksPlugin);

function openOnClick(event, elements, chart) {
  if (elements.length > 0) {
    const point = chart.data.datasets[elements[0].datasetIndex].data[elements[0].index];
    if (point && point.c) { showDetail(point.c); }
  }
}
