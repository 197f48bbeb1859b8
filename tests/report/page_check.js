// Runs inside the page: does what a reader does and writes what it found into the document.
setTimeout(() => {
  const found = {faults: window.faults, title: document.title, sections: [], blank: [], canvases: 0};
  const check = (name, action) => { try { found[name] = action(); } catch (e) { found.faults.push(name + ": " + e); } };
  const drawn = (canvas) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let count = 0;
    for (let i = 3; i < pixels.length; i += 4) { count += pixels[i] > 0; }
    return count > 500;
  };
  check("sections", () => [...document.querySelectorAll("main section")].map((s) => s.id));
  check("canvases", () => document.querySelectorAll("canvas").length);
  check("blank", () => [...document.querySelectorAll("canvas")].filter((c) => !drawn(c)).map((c) => c.getAttribute("aria-label")));
  const table = document.querySelector("#table table");
  const heads = [...table.tHead.rows[0].cells];
  const column = heads.findIndex((h) => h.textContent.startsWith("time"));
  const values = () => [...table.tBodies[0].rows].map((r) => r.cells[column].textContent);
  const sorted = (direction) => {
    heads[column].querySelector("button").click();
    const numbers = values().map((v) => v === "–" ? null : Number(v));
    const known = numbers.filter((v) => v !== null);
    return known.length > 5 && known.every((v, i) => i === 0 || direction * (v - known[i - 1]) >= 0) &&
      numbers.slice(known.length).every((v) => v === null);
  };
  check("rows", () => table.tBodies[0].rows.length);
  check("ascending", () => sorted(1) && heads[column].getAttribute("aria-sort") === "ascending");
  check("descending", () => sorted(-1) && heads[column].getAttribute("aria-sort") === "descending");
  check("filtered", () => {
    const search = document.querySelector("#table input[type=search]");
    search.value = "q4_K n=8 ";
    search.dispatchEvent(new Event("input"));
    const count = table.tBodies[0].rows.length;
    search.value = "";
    search.dispatchEvent(new Event("input"));
    return count;
  });
  check("details", () => {
    const dialog = document.getElementById("detail");
    table.querySelector("button.row").click();
    const good = dialog.open && [...dialog.querySelectorAll("canvas")].every(drawn) && dialog.contains(document.activeElement) &&
      dialog.querySelector("pre").textContent.startsWith("cudabk ");
    dialog.close();
    return good;
  });
  check("selects", () => {
    let changed = 0;
    for (const box of document.querySelectorAll("select")) {
      for (const option of box.options) { box.value = option.value; box.dispatchEvent(new Event("change")); ++changed; }
    }
    return changed;
  });
  check("legend", () => {
    const buttons = [...document.querySelectorAll(".legend button")];
    buttons.forEach((b) => { b.click(); b.click(); });
    return buttons.length;
  });
  check("unreachable", () => [...document.querySelectorAll("button, select, input, a[href]")].filter((e) => e.tabIndex < 0).length);
  check("unlabelled", () => [...document.querySelectorAll("select, input")].filter((e) => e.labels.length === 0).length);
  check("holes", () => (document.getElementById("main").innerText.match(/\b(null|undefined|NaN|Infinity|\[object)\b/g) || []));
  check("requests", () => performance.getEntriesByType("resource").map((e) => e.name));
  check("overflow", () => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check("background", () => getComputedStyle(document.body).backgroundColor);
  check("printed", () => { dispatchEvent(new Event("beforeprint")); dispatchEvent(new Event("afterprint")); return true; });
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = "FOUND" + JSON.stringify(found) + "END";
  document.body.append(out);
}, 200);
