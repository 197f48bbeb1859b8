// The page from top to bottom.
// The architecture only where the name does not hold it: "NVIDIA H200 (sm_90a)", "emulated sm_80".
function deviceLabel(d) {
  return d.name.includes(d.arch) ? d.name : d.name + " (" + d.arch + ")";
}

function factTable(facts) {
  return el("table", {class: "plain"}, el("tbody", {}, facts.filter(([, v]) => v !== null && v !== undefined && v !== "")
    .map(([name, value]) => el("tr", {}, el("th", {scope: "row"}, name), el("td", {}, value)))));
}

function environmentSection() {
  const node = section("environment", "Environment", "What ran, and on what; enough to repeat it.");
  const d = run.device;
  node.append(factTable([["device", deviceLabel(d) + ", " + d.sms + " SMs, L2 " + bytes(d.l2) + ", memory " + bytes(d.memory)],
    ["driver", d.driver], ["toolkit", run.toolkit], ["UUID", d.uuid], ["cudabk", run.tool], ["started", run.started],
    ["command", el("code", {}, "cudabk " + run.arguments.join(" "))], ["profile", run.profile.source + " (" + run.profile.why + ")"],
    ["read bandwidth", isNumber(run.limits.read) ? figure(run.limits.read / 1e9, 4) + " GB/s" : null],
    ["copy bandwidth", isNumber(run.limits.copy) ? figure(run.limits.copy / 1e9, 4) + " GB/s" : null],
    ["matrix rate", isNumber(run.limits.gemm) ? figure(run.limits.gemm / 1e12, 4) + " TFLOP/s" + (run.limits.gemmText ? " (" + run.limits.gemmText + ")" : "") : null],
    ...Object.entries(run.tags).map(([k, v]) => ["tag " + k, v]), ...Object.entries(run.facts).map(([k, v]) => [k.replaceAll("_", " "), v]),
    ["file", run.file], ["digest", el("code", {}, run.digest)]]));
  if (runs.length > 1) {
    node.append(el("h3", {}, "Runs of this history"), table([{text: "started"}, {text: "file"}, {text: "device"}, {text: "cudabk"}, {text: "driver"}, {text: "cases", num: true}],
      runs.map((r) => [r.started, r.file, r.device.name, r.tool, r.device.driver || "–", r.cases])));
  }
}

function navigation() {
  const list = [...document.querySelectorAll("main section")].map((s) => el("li", {}, el("a", {href: "#" + s.id}, s.dataset.nav)));
  document.getElementById("nav").append(el("ul", {}, list));
}

document.getElementById("subtitle").textContent = [deviceLabel(run.device), run.started.replace("T", " ").replace("Z", " UTC"),
  "cudabk " + run.tool, "profile " + run.profile.source].join(" · ");
if (cases.length > 0) {
  overview();
  changeSection();
  rooflineSection();
  sweepSection();
  mapSection();
  launchSection();
  tableSection();
  historySection();
}
environmentSection();
navigation();
