// One case: samples in the order they were taken, kernels, check, command.
let detailCharts = [];

function sampleConfig(c) {
  return {
    type: "line",
    data: {datasets: [{data: c.samples.map((s, i) => ({x: i + 1, y: s / 1e3})), showLine: false, pointRadius: 2.5, backgroundColor: colourAt(0), borderColor: colourAt(0)},
      ...(isNumber(c.time) ? [{data: [{x: 1, y: c.time / 1e3}, {x: Math.max(c.samples.length, 2), y: c.time / 1e3}], pointRadius: 0, borderColor: colour("soft"), borderWidth: 1, borderDash: [4, 4]}] : [])]},
    options: {
      scales: {x: {type: "linear", title: {display: true, text: "sample, in the order taken"}, ticks: {precision: 0}, grid: {display: false}},
        y: {title: {display: true, text: "µs"}, grid: {color: colour("grid")}}},
      plugins: {tooltip: {callbacks: {title: () => "", label: (t) => "sample " + t.raw.x + ": " + time(t.raw.y * 1e3)}}},
    },
  };
}

function detailFacts(c) {
  const facts = [["kernel", choiceText(c) + (c.rule >= 0 ? ", rule " + c.rule + " of the table" : c.family ? ", last resort of the table or asked for" : "")],
    ["mode", [c.launch, "cache " + c.cache, "fusion " + c.fusion].join(", ") + (c.fallback ? " (" + c.fallback + ")" : "")]];
  if (isNumber(c.time)) {
    facts.push(["time", time(c.time) + ", interval " + time(c.low) + " … " + time(c.high) + ", " + c.count + " samples, timer " + c.timer + ", stopped by " + c.stop]);
    facts.push(["compulsory", bytes(c.bytes) + ", " + figure(c.ops / 1e9) + " GFLOP: " + figure(c.bytes / c.time) + " GB/s, " + figure(c.ops / c.time / 1e3) + " TFLOP/s"]);
  }
  if (isNumber(c.limit)) { facts.push(["of the limit", percent(c.limit, 1)]); }
  if (isNumber(kernelTime(c))) { facts.push(["in kernels", time(kernelTime(c)) + (isNumber(idleTime(c)) ? ", gaps " + time(idleTime(c)) : "")]); }
  if (isNumber(c.enqueue)) { facts.push(["host", time(c.enqueue) + " to enqueue one op"]); }
  facts.push(["cache", c.copies + " copies per replay" + (isNumber(c.footprint) ? ", " + figure(c.footprint, 2) + " × L2 touched" : "") + (c.cold ? ", cold proven" : "")]);
  if (c.clocks.length > 0) {
    const low = Math.min(...c.clocks), high = Math.max(...c.clocks);
    facts.push(["SM clock", low === high ? low.toFixed(0) + " MHz" : low.toFixed(0) + " to " + high.toFixed(0) + " MHz"]);
  }
  facts.push(["check", c.check ? (c.check.passed ? "passed" : "FAILED") + ", NMSE " + c.check.nmse.toExponential(2) + ", bound " + c.check.tolerance.toExponential(1) +
    ", " + c.check.elements + " elements" : "not checked"]);
  if (c.fusions.length > 0) { facts.push(["fused", c.fusions.join(", ")]); }
  if (remarks(c)) { facts.push(["remarks", remarks(c)]); }
  return el("table", {class: "plain"}, el("tbody", {}, facts.map(([name, text]) => el("tr", {}, el("th", {scope: "row"}, name), el("td", {}, text)))));
}

function showDetail(c) {
  const dialog = document.getElementById("detail");
  detailCharts.forEach(drop);
  detailCharts = [];
  const close = el("button", {type: "button", onclick: () => dialog.close()}, "Close");
  dialog.replaceChildren(el("div", {class: "top"}, el("h2", {id: "detail-title"}, caseName(c)), close), detailFacts(c));
  dialog.showModal();
  if (c.samples.length > 0) {
    const box = chartBox("Samples: a slope is drift, two bands are two clock levels", () => sampleConfig(c));
    dialog.append(box.node);
    detailCharts.push(box.entry);
    box.draw();
  }
  if (c.kernels.length > 0) { dialog.append(el("h3", {}, "Launches"), launchTable(c)); }
  dialog.append(el("h3", {}, "Measured again by"), el("pre", {}, c.command));
  close.focus();
}
