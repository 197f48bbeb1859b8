// Roofline: rate against arithmetic intensity, one mark per case, under the measured limits.
function roofs(low, high) {
  const {read, gemm} = run.limits;
  const sets = [];
  if (!isNumber(read)) { return sets; }
  const ridge = isNumber(gemm) ? gemm / read : Infinity;
  const line = (label, points) => ({label, data: points, type: "line", borderColor: colour("soft"), borderWidth: 1.5,
    pointRadius: 0, pointHitRadius: 0, order: 9});
  const end = Math.min(high, ridge);
  if (low < end) {
    sets.push(line("read bandwidth", [{x: low, y: low * read / 1e12}, {x: end, y: end * read / 1e12}]));
  }
  if (high > ridge) {
    sets.push(line("matrix rate", [{x: Math.max(ridge, low), y: gemm / 1e12}, {x: high, y: gemm / 1e12}]));
  }
  return sets;
}

function rooflinePoints(family, hidden) {
  return cases.filter((c) => isNumber(c.time) && c.ops > 0 && c.bytes > 0 && (family === "" || c.family === family) &&
    !hidden.has(c.params.type || ""));
}

function rooflineConfig(family, hidden) {
  const points = rooflinePoints(family, hidden);
  const all = cases.filter((c) => c.ops > 0 && c.bytes > 0).map((c) => c.ops / c.bytes);
  const low = Math.min(...all) / 2, high = Math.max(...all) * 2;
  const rates = cases.filter((c) => isNumber(c.time) && c.ops > 0).map((c) => c.ops / c.time / 1e3);
  const floor = Math.min(...rates) / 2;
  const ceiling = 1.6 * Math.max(...rates, isNumber(run.limits.gemm) ? run.limits.gemm / 1e12 : 0);
  const groups = unique(points.map((c) => (c.params.type || "") + "|" + c.family));
  const sets = groups.map((g) => {
    const [type, name] = g.split("|");
    const own = types.length > 1 ? typeColour(type) : familyColour(name);
    return {
      label: (type + " " + name).trim(), type: "scatter",
      data: points.filter((c) => (c.params.type || "") + "|" + c.family === g)
        .map((c) => ({x: c.ops / c.bytes, y: c.ops / c.time / 1e3, c})),
      borderColor: own, backgroundColor: own + "cc",
      pointStyle: markers[Math.max(families.indexOf(name), 0) % markers.length], radius: 5, hoverRadius: 7, borderWidth: 1.5,
    };
  });
  return {
    type: "scatter",
    data: {datasets: [...sets, ...roofs(low, high)]},
    options: {
      onClick: openOnClick,
      scales: {x: logAxis("operations per compulsory byte", {min: low, max: high}), y: logAxis("TFLOP/s", {min: floor, max: ceiling})},
      plugins: {tooltip: {callbacks: {label: (t) => t.raw.c
        ? [caseName(t.raw.c), time(t.raw.c.time) + " · " + figure(t.raw.y) + " TFLOP/s · " + percent(t.raw.c.limit) + " of the limit", choiceText(t.raw.c)]
        : t.dataset.label}}},
    },
  };
}

function rooflineSection() {
  if (!cases.some((c) => isNumber(c.time) && c.ops > 0 && c.bytes > 0)) { return; }
  const node = section("roofline", "Roofline", "Each mark is a case; the height left to the line above it is what a better kernel " +
    "could win. Left of the bend memory limits, right of it the tensor cores. " +
    (types.length > 1 ? "Colour: type; shape: kernel family. " : "Shape and colour: kernel family. ") + "A mark opens its case.");
  let family = "";
  const hidden = new Set();
  const box = chartBox("Rate against intensity, both axes logarithmic" +
    (isNumber(run.limits.read) ? ", with the limits measured in this run" : "; this run has no measured limits"),
  () => rooflineConfig(family, hidden), true);
  const chooser = select("Kernel family", [["", "all families"], ...families.map((f) => [f, f])], (v) => { family = v; box.draw(); });
  node.append(el("div", {class: "controls"}, families.length > 1 ? chooser.label : null));
  if (types.length > 1) {
    node.append(legend(types.map((t) => ({key: t, text: t, colour: typeColour(t)})), hidden, () => box.draw()));
  }
  if (families.length > 1) {
    const symbols = {circle: "●", rect: "■", triangle: "▲", rectRot: "◆", star: "✳", crossRot: "✕", rectRounded: "▢", cross: "＋"};
    node.append(el("p", {class: "why"}, families.map((f, i) => symbols[markers[i % markers.length]] + " " + f).join("   ")));
  }
  node.append(box.node);
  box.draw();
}
