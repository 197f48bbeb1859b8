// Where the time of a case goes: its launches and the gaps between them.
function launchTable(c) {
  const total = isNumber(c.time) ? c.time : c.kernels.reduce((sum, k) => sum + (ownTime(k) || 0) + idleBefore(k), 0);
  const traced = hasTrace(c), overlaps = traced && c.kernels.some((k) => k.gap < 0);
  const headers = [{text: "launch"}, {text: "kernel"}, ...(traced ? [{text: "time", num: true}, ...(overlaps ? [{text: "of it overlapping", num: true}] : []), {text: "share", num: true}, {text: "gap before", num: true}] : []),
    {text: "grid", num: true}, {text: "block", num: true}, {text: "shared", num: true}, {text: "registers", num: true}, {text: "spills", num: true}];
  const extents = (list) => list.every((n) => n === 0) ? "–" : list.join(" × ").replace(/( × 1)+$/, "");
  return table(headers, c.kernels.map((k) => [k.label, el("code", {}, k.kernel),
    ...(traced ? [time(k.time), ...(overlaps ? [k.gap < 0 ? time(k.time - ownTime(k)) : "none"] : []),
      isNumber(k.time) && total > 0 ? percent(ownTime(k) / total) : "–", k.gap < 0 ? "none" : time(k.gap)] : []),
    extents(k.grid), extents(k.block), bytes(k.shared), k.registers || "–", k.spills ? bytes(k.spills) : "none"]));
}

// One colour per kind of kernel: "frag_vector q4_K" and "frag_vector q6_K" are one.
const launchKind = (k) => k.label.split(" ")[0];
const launchKinds = (list) => unique(list.flatMap((c) => c.kernels.map(launchKind)));

// `shares`: of each case's own time, so that short and long ones can be read side by side; else in µs.
function launchConfig(list, shares) {
  const whole = (c) => shares ? (kernelTime(c) + idleTime(c)) / 100 : 1e3;
  const sum = (c, pick) => c.kernels.reduce((total, k) => total + (pick(k) || 0), 0) / whole(c);
  const sets = launchKinds(list).map((kind, i) => ({label: kind, data: list.map((c) => sum(c, (k) => launchKind(k) === kind ? ownTime(k) : 0)),
    backgroundColor: colourAt(i), stack: "s"}));
  sets.push({label: "gaps between kernels", data: list.map((c) => sum(c, idleBefore)), backgroundColor: colour("line"), stack: "s"});
  return {
    type: "bar", data: {labels: list.map(chartName), datasets: sets},
    options: {
      indexAxis: "y", onClick: (event, elements) => elements.length && showDetail(list[elements[0].index]),
      scales: {x: {stacked: true, title: {display: true, text: shares ? "% of the time in kernels and gaps" : "µs"}, max: shares ? 100 : undefined, grid: {color: colour("grid")}}, y: {stacked: true, grid: {display: false}, ticks: {autoSkip: false, font: {size: 11}}}},
      plugins: {tooltip: {callbacks: {label: (t) => {
        const ns = t.raw * whole(list[t.dataIndex]);
        return t.dataset.label + ": " + time(ns) + " (" + percent(ns / list[t.dataIndex].time) + ")";
      }}}},
    },
  };
}

function launchSection() {
  const isLayer = (c) => c.target === "layer";
  const layered = cases.filter((c) => c.kernels.length > 2 || (isLayer(c) && c.kernels.length > 0)).sort((a, b) => isLayer(b) - isLayer(a));
  const list = layered.length > 0 ? layered : cases.filter((c) => c.kernels.length > 1 && hasTrace(c));
  if (list.length === 0) { return; }
  const traced = list.filter(hasTrace);
  const node = section("launches", "Launches", "Where the time of an op goes: its kernels in order, and the idle time between them. " +
    "Many short launches with gaps call for fusion; one long bar for a better kernel." +
    (traced.some((c) => c.kernels.some((k) => k.gap < 0)) ? " Where a kernel starts while the one in front of it still runs, only the time after that counts." : "") +
    (traced.length === 0 ? " This run was not traced, so the launches have no times of their own." : ""));
  if (traced.length > 0) {
    const shown = traced.slice(0, 24);
    let shares = true;
    const box = chartBox("Time by launch" + (traced.length > shown.length ? " (the first " + shown.length + " of " + traced.length + " cases)" : ""),
      () => launchConfig(shown, shares), true);
    box.entry.canvas.parentNode.style.height = 6 + 2.2 * shown.length + "rem";
    const labels = launchKinds(shown);
    const scale = select("Bars show", [["share", "shares of the op's time"], ["time", "time in µs"]], (value) => { shares = value === "share"; box.draw(); });
    node.append(el("div", {class: "controls"}, scale.label), el("p", {class: "legend"}, [...labels, "gaps between kernels"].map((label, i) => el("span", {class: "sub"},
      el("span", {class: "swatch", style: "background:" + (i < labels.length ? "var(--c" + i % colours + ")" : "var(--line)")}), " " + label + "  "))), box.node);
    box.draw();
  }
  const body = el("div");
  const fill = (i) => body.replaceChildren(el("h3", {}, caseName(list[Number(i)])), launchTable(list[Number(i)]));
  node.append(el("div", {class: "controls"}, select("Case", list.map((c, i) => [i, caseName(c) + (modeText(c) ? " (" + modeText(c) + ")" : "")]), fill).label), body);
  fill(0);
}
