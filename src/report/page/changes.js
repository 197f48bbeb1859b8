// Change against a baseline, and the history of several runs.
const verdictClass = {regressed: "bad", improved: "good", inconclusive: "warn", missing: "warn"};

function changeConfig(list) {
  const fill = (c) => colour(verdictClass[c.verdict] || "soft");
  const reach = (pick) => 105 * pick(0, ...list.flatMap((c) => [c.low, c.high]).filter(isNumber));
  return {
    type: "bar",
    data: {labels: list.map((c) => c.c ? chartName(c.c) : c.name), datasets: [{data: list.map((c) => 100 * c.change), backgroundColor: list.map(fill), barPercentage: 0.7}]},
    options: {
      indexAxis: "y",
      scales: {x: {title: {display: true, text: "change of time, % (right: slower)"}, suggestedMin: reach(Math.min), suggestedMax: reach(Math.max), grid: {color: colour("grid")}}, y: {grid: {display: false}, ticks: {autoSkip: false, font: {size: 11}}}},
      plugins: {tooltip: {callbacks: {label: (t) => signed(list[t.dataIndex].change) + " (" + signed(list[t.dataIndex].low) + " … " + signed(list[t.dataIndex].high) + "), " + list[t.dataIndex].verdict}}},
    },
    plugins: [{id: "whiskers", afterDatasetsDraw(chart) {
      const context = chart.ctx, x = chart.scales.x;
      context.save();
      context.strokeStyle = colour("ink");
      list.forEach((c, i) => {
        const bar = chart.getDatasetMeta(0).data[i];
        if (!bar || !isNumber(c.low) || !isNumber(c.high)) { return; }
        context.beginPath();
        context.moveTo(x.getPixelForValue(100 * c.low), bar.y);
        context.lineTo(x.getPixelForValue(100 * c.high), bar.y);
        context.stroke();
      });
      context.restore();
    }}],
  };
}

function changeSection() {
  if (!data.changes) { return; }
  const named = data.changes.map((c) => {
    const found = cases.find((x) => x.key === c.key);
    return {...c, c: found, name: found ? caseName(found) + (modeText(found) ? " (" + modeText(found) + ")" : "") : c.key};
  });
  const node = section("changes", "Change against the baseline", "Baseline: " + data.baseline.files.join(", ") + " (" + data.baseline.started + ", cudabk " + data.baseline.versions.join(", ") + ")" +
    ". Lines are confidence intervals: a bar whose line reaches zero is no change.", "Changes");
  for (const line of data.baselineNotes) { node.append(el("p", {class: "notice"}, line)); }
  const measured = named.filter((c) => isNumber(c.change));  // in the order of the comparison: the worst first
  if (measured.length > 0) {
    const shown = measured.slice(0, 30);
    const box = chartBox("Change of time" + (measured.length > shown.length ? ", the " + shown.length + " that matter most of " + measured.length : ""), () => changeConfig(shown), true);
    box.entry.canvas.parentNode.style.height = 5 + 2.2 * shown.length + "rem";
    node.append(box.node);
    box.draw();
  }
  const rows = [...measured, ...named.filter((c) => !isNumber(c.change))].map((c) => [c.c ? rowButton(c.c, c.name) : c.name,
    time(c.before), time(c.after), signed(c.change), isNumber(c.low) ? signed(c.low) + " … " + signed(c.high) : "–",
    el("span", {class: verdictClass[c.verdict] || ""}, c.verdict), c.why]);
  const list = table([{text: "case"}, {text: "baseline", num: true}, {text: "now", num: true}, {text: "change", num: true}, {text: "interval", num: true}, {text: "verdict"}, {text: "why"}], rows);
  list.classList.add("tall");
  node.append(list);
}

function historyConfig(key) {
  const labels = runs.map((r) => r.started.replace("T", " ").replace("Z", ""));
  const common = cases.filter((c) => c.history.every(isNumber));
  const geomean = runs.map((_, i) => Math.exp(common.reduce((sum, c) => sum + Math.log(c.history[i] / c.history[0]), 0) / common.length));
  const chosen = key === "" ? null : cases[Number(key)];
  const values = chosen ? chosen.history.map((t) => isNumber(t) ? t / 1e3 : null) : geomean.map((g) => 100 * g);
  return {
    type: "line",
    data: {labels, datasets: [{data: values, borderColor: colourAt(0), backgroundColor: colourAt(0), borderWidth: 2, pointRadius: 4, tension: 0, spanGaps: true}]},
    options: {
      scales: {x: {grid: {display: false}, ticks: {maxRotation: 45}}, y: {title: {display: true, text: chosen ? "time of one op, µs" : "% of the first run's time"}, grace: "10%", grid: {color: colour("grid")}}},
      plugins: {tooltip: {callbacks: {label: (t) => (chosen ? time(t.raw * 1e3) : figure(t.raw, 4) + " %") + ", cudabk " + runs[t.dataIndex].tool}}},
    },
  };
}

function historySection() {
  if (runs.length < 2) { return; }
  const node = section("history", "History", "The same cases in " + runs.length + " runs, oldest first. A step that all cases share comes from the machine, " +
    "one that a single case has from its kernel.");
  const devices = unique(runs.map((r) => r.device.name));
  if (devices.length > 1) { node.append(el("p", {class: "notice"}, "These runs are from different devices (" + devices.join(", ") + "): their times do not compare.")); }
  let key = "";
  const common = cases.filter((c) => c.history.every(isNumber)).length;
  const options = [...(common > 0 ? [["", "geometric mean of the " + common + " cases in every run"]] : []),
    ...cases.map((c, i) => [i, caseName(c) + (modeText(c) ? " (" + modeText(c) + ")" : "")])];
  key = options[0][0];
  const box = chartBox("Time over runs", () => historyConfig(String(key)), true);
  node.append(el("div", {class: "controls"}, select("Case", options, (v) => { key = v; box.draw(); }).label), box.node);
  box.draw();
}
