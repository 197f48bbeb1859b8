// Where the time of a case goes: its launches and the gaps between them.
const hasTrace = (c) => c.kernels.some((k) => isNumber(k.time));

function launchTable(c) {
  const total = isNumber(c.time) ? c.time : c.kernels.reduce((sum, k) => sum + (k.time || 0) + (k.gap || 0), 0);
  const traced = hasTrace(c);
  const headers = [{text: "launch"}, {text: "kernel"}, ...(traced ? [{text: "time", num: true}, {text: "share", num: true}, {text: "gap before", num: true}] : []),
    {text: "grid", num: true}, {text: "block", num: true}, {text: "shared", num: true}, {text: "registers", num: true}, {text: "spills", num: true}];
  const extents = (list) => list.every((n) => n === 0) ? "–" : list.join(" × ").replace(/( × 1)+$/, "");
  return table(headers, c.kernels.map((k) => [k.label, el("code", {}, k.kernel),
    ...(traced ? [time(k.time), isNumber(k.time) && total > 0 ? percent(k.time / total) : "–", time(k.gap)] : []),
    extents(k.grid), extents(k.block), bytes(k.shared), k.registers || "–", k.spills ? bytes(k.spills) : "none"]));
}

function launchConfig(list) {
  const labels = unique(list.flatMap((c) => c.kernels.map((k) => k.label)));
  const share = (c, pick) => c.kernels.reduce((sum, k) => sum + (pick(k) || 0), 0) / 1e3;
  const sets = labels.map((label, i) => ({label, data: list.map((c) => share(c, (k) => k.label === label ? k.time : 0)),
    backgroundColor: colourAt(i), stack: "s"}));
  sets.push({label: "gaps between kernels", data: list.map((c) => share(c, (k) => k.gap)), backgroundColor: colour("line"), stack: "s"});
  return {
    type: "bar", data: {labels: list.map(caseName), datasets: sets},
    options: {
      indexAxis: "y", onClick: (event, elements) => elements.length && showDetail(list[elements[0].index]),
      scales: {x: {stacked: true, title: {display: true, text: "µs"}, grid: {color: colour("grid")}}, y: {stacked: true, grid: {display: false}}},
      plugins: {tooltip: {callbacks: {label: (t) => t.dataset.label + ": " + time(t.raw * 1e3) + " (" + percent(t.raw * 1e3 / list[t.dataIndex].time) + ")"}}},
    },
  };
}

function launchSection() {
  const layered = cases.filter((c) => c.kernels.length > 2 || (c.target === "layer" && c.kernels.length > 0));
  const list = layered.length > 0 ? layered : cases.filter((c) => c.kernels.length > 1 && hasTrace(c));
  if (list.length === 0) { return; }
  const traced = list.filter(hasTrace);
  const node = section("launches", "Launches", "Where the time of an op goes: its kernels in order, and the idle time between them. " +
    "Many short launches with gaps call for fusion; one long bar for a better kernel." +
    (traced.length === 0 ? " This run was not traced, so the launches have no times of their own." : ""));
  if (traced.length > 0) {
    const shown = traced.slice(0, 24);
    const box = chartBox("Time inside kernels, by launch" + (traced.length > shown.length ? " (the first " + shown.length + " of " + traced.length + " cases)" : ""),
      () => launchConfig(shown), true);
    box.entry.canvas.parentNode.style.height = 6 + 2.2 * shown.length + "rem";
    const labels = unique(shown.flatMap((c) => c.kernels.map((k) => k.label)));
    node.append(el("p", {class: "legend"}, [...labels, "gaps between kernels"].map((label, i) => el("span", {class: "sub"},
      el("span", {class: "swatch", style: "background:" + (i < labels.length ? "var(--c" + i % 10 + ")" : "var(--line)")}), " " + label + "  "))), box.node);
    box.draw();
  }
  const body = el("div");
  const fill = (i) => body.replaceChildren(el("h3", {}, caseName(list[Number(i)])), launchTable(list[Number(i)]));
  node.append(el("div", {class: "controls"}, select("Case", list.map((c, i) => [i, caseName(c) + (modeText(c) ? " (" + modeText(c) + ")" : "")]), fill).label), body);
  fill(0);
}
