// What the page can do with a script: sort and filter the comparisons, open a cell in a drawer, choose light or dark.
// Without it, everything is there to read: the links lead to the lines that the drawer is made of.
"use strict";
(() => {
  const { cells, files } = JSON.parse(document.getElementById("data").textContent);
  const drawer = document.getElementById("drawer");
  const table = document.getElementById("comparisons-table");
  const SVG = "http://www.w3.org/2000/svg";

  // Text goes in as text, so nothing in a name is ever taken for markup.
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const draw = (tag, attributes, ...children) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const number = (value) => (value === null ? "–" : value.toFixed(2));
  const signed = (value) => (value === null ? "–" : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2));
  const hash = () => decodeURIComponent(location.hash.slice(1));

  // -- light and dark ----------------------------------------------------------------------------

  const SCHEMES = ["auto", "light", "dark"];
  const remembered = () => {
    try { return localStorage.getItem("scheme") ?? "auto"; } catch { return "auto"; }
  };
  const theme = make("button", { id: "theme", type: "button" });
  const setScheme = (scheme) => {
    if (scheme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = scheme;
    theme.textContent = `Colours: ${scheme}`;
    try { localStorage.setItem("scheme", scheme); } catch { /* not remembered, then */ }
  };
  theme.addEventListener("click", () => {
    const current = document.documentElement.dataset.theme ?? "auto";
    setScheme(SCHEMES[(SCHEMES.indexOf(current) + 1) % SCHEMES.length]);
  });
  setScheme(SCHEMES.includes(remembered()) ? remembered() : "auto");
  document.querySelector("header").append(theme);

  // -- the comparisons ---------------------------------------------------------------------------

  const VERDICTS = ["reproduced", "close", "inconclusive", "differs"];
  let showComparisons = () => {};

  if (table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const keys = heads.map((head) => head.dataset.key);
    const valueOf = (row, key) => {
      const cell = row.cells[keys.indexOf(key)];
      return cell.dataset.value ?? cell.textContent.trim();
    };
    const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
    const controls = document.querySelector("#comparisons .controls");
    const selects = heads.filter((head) => "filter" in head.dataset).map((head) => {
      const key = head.dataset.key;
      const select = make("select", { name: key }, make("option", { value: "", textContent: "all" }));
      const options = new Map(rows.map(({ row }) => [valueOf(row, key), row.cells[keys.indexOf(key)].lastChild.textContent.trim()]));
      for (const [value, words] of options) select.append(make("option", { value, textContent: words }));
      controls.append(make("label", {}, head.textContent, select));
      return select;
    });
    const search = make("input", { type: "search", name: "q" });
    const count = make("output", {});
    const reset = make("button", { type: "button", textContent: "Show all" });
    controls.append(make("label", {}, "Search", search), reset, count);

    const state = () => new URLSearchParams(hash().startsWith("comparisons?") ? hash().slice("comparisons?".length) : "");
    const compare = (key) => (first, second) => {
      const [a, b] = [first, second].map(({ row }) => valueOf(row, key));
      if (key === "verdict") return VERDICTS.indexOf(a) - VERDICTS.indexOf(b);
      const [x, y] = [a, b].map((text) => parseFloat(text.replace("−", "-").replaceAll(",", "")));
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.localeCompare(b);
      return x - y;
    };
    showComparisons = () => {
      const query = state();
      for (const select of selects) select.value = query.get(select.name) ?? "";
      if (document.activeElement !== search) search.value = query.get("q") ?? "";
      const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, text } of rows) {
        row.hidden = !selects.every((select) => !select.value || valueOf(row, select.name) === select.value)
          || !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = `${shown} of ${rows.length} shown`;
      const sort = query.get("sort") ?? "";
      const [key, direction] = [sort.replace(/^-/, ""), sort.startsWith("-") ? -1 : 1];
      for (const head of heads) head.removeAttribute("aria-sort");
      const sorted = keys.includes(key) ? [...rows].sort((a, b) => direction * compare(key)(a, b)) : rows;
      if (keys.includes(key)) heads[keys.indexOf(key)].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      body.append(...sorted.map(({ row }) => row));
    };
    // The state stands in the address, so that a view can be linked to.
    const change = (name, value) => {
      const query = state();
      if (value) query.set(name, value); else query.delete(name);
      history.replaceState(null, "", `#comparisons${query.size ? `?${query}` : ""}`);
      showComparisons();
    };
    for (const select of selects) select.addEventListener("change", () => change(select.name, select.value));
    search.addEventListener("input", () => change("q", search.value));
    reset.addEventListener("click", () => {
      history.replaceState(null, "", "#comparisons");
      search.value = "";
      showComparisons();
    });
    for (const head of heads) {
      const button = make("button", { type: "button", textContent: head.textContent });
      button.addEventListener("click", () => {
        const current = state().get("sort");
        change("sort", current === head.dataset.key ? `-${head.dataset.key}` : current === `-${head.dataset.key}` ? "" : head.dataset.key);
      });
      head.replaceChildren(button);
    }
    for (const link of document.querySelectorAll("a[data-query]")) link.href = `#comparisons?${link.dataset.query}`;
  }

  // -- the drawer --------------------------------------------------------------------------------

  const strip = (trials, verdict) => {
    const values = trials.map(([, accuracy]) => accuracy).filter((accuracy) => accuracy !== null);
    if (verdict) values.push(verdict.published_mean);
    if (!values.length) return make("p", { textContent: "Every trial diverged." });
    const [low, high] = [Math.floor(Math.min(...values) - 1), Math.ceil(Math.max(...values) + 1)];
    const x = (value) => 10 + (value - low) / (high - low) * 380;
    const svg = draw("svg", { class: "strip", viewBox: "0 0 400 40", role: "img" },
      draw("path", { class: "axis", d: "M10 20H390" }),
      draw("text", { x: 10, y: 38 }, `${low} %`), draw("text", { x: 390, y: 38, "text-anchor": "end" }, `${high} %`));
    if (verdict) svg.append(draw("path", { class: "published", d: `M${x(verdict.published_mean)} 8V32` }));
    for (const [seed, accuracy] of trials) {
      if (accuracy !== null) svg.append(draw("circle", { class: "trial", cx: x(accuracy), cy: 20, r: 5 }, draw("title", {}, `seed ${seed}: ${number(accuracy)} %`)));
    }
    svg.setAttribute("aria-label", `Trials at ${trials.map(([, accuracy]) => number(accuracy)).join(", ")} %${verdict ? `; the paper's mean at ${number(verdict.published_mean)} %` : ""}`);
    return svg;
  };

  const arithmetic = (verdict) => {
    if (!verdict) return [make("p", { textContent: "The paper has no such cell." })];
    const facts = [
      ["Verdict", verdict.verdict],
      ["Ours", `${number(verdict.mean)} ± ${number(verdict.std)} %, ${verdict.trials} trials${verdict.diverged ? `, ${verdict.diverged} diverged` : ""}`],
      ["The paper’s", `${number(verdict.published_mean)} ± ${number(verdict.published_std)} %, 3 trials`],
      ["Difference", `${signed(verdict.difference)} points`],
      ["Interval", `${signed(verdict.interval_low)} to ${signed(verdict.interval_high)}`],
      ["Reason", verdict.reason],
    ];
    return [make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]))];
  };

  const fill = (name) => {
    const { title, epochs, trials, verdict } = cells[name];
    const curve = document.getElementById(name).querySelector("svg").cloneNode(true);
    const { low, high, first, last } = curve.dataset;
    const seeds = trials.map(([seed]) => make("li", {}, draw("svg", { viewBox: "0 0 35 10", "aria-hidden": true }, draw("path", { d: "M0 5H35" })), `seed ${seed}`));
    const shut = make("button", { type: "button", className: "shut", textContent: "Close", autofocus: true });
    shut.addEventListener("click", () => drawer.close());
    drawer.replaceChildren(
      shut,
      make("h2", { id: "drawer-title", textContent: title }),
      ...arithmetic(verdict),
      make("h3", { textContent: "Trials" }),
      strip(trials, verdict),
      make("p", { className: "quiet", textContent: `A dot is the mean accuracy of a trial over epochs ${epochs}${verdict ? "; the line is the paper’s mean" : ""}.` }),
      make("h3", { textContent: "Test accuracy by epoch" }),
      make("div", { className: "axis" }, make("span", { textContent: `${high} %` })),
      curve,
      make("div", { className: "axis" }, make("span", { textContent: `${low} %, epoch ${first}` }), make("span", { textContent: `epoch ${last}` })),
      make("ul", { className: "seeds" }, ...seeds),
      make("h3", { textContent: "Where it comes from" }),
      make("dl", {}, ...trials.flatMap(([seed, accuracy, key, place, origin]) => [
        make("dt", { textContent: `Seed ${seed}` }),
        make("dd", {}, `${accuracy === null ? "diverged" : `${number(accuracy)} %`}, ${trainedBy(origin)}; `, make("code", { textContent: key }), " in ", make("code", { textContent: files[place] })),
      ])),
      make("h3", { textContent: "Trace it, train it again" }),
      make("pre", { textContent: [`./run trace ${name}`, ...trials.map(([seed]) => `./run retrain ${name}/seed${seed}`)].join("\n") }),
    );
  };
  const origins = new Map([...document.querySelectorAll("#training tbody tr")].map((row) =>
    [row.cells[0].textContent, `${row.cells[2].firstChild.textContent} on ${row.cells[1].textContent}, ${row.cells[3].textContent}`]));
  const trainedBy = (letter) => origins.get(letter) ?? "not recorded";

  let before = "";  // the address to return to
  const openCell = (name) => {
    fill(name);
    if (!drawer.open) drawer.showModal();
    drawer.scrollTop = 0;
  };
  drawer.addEventListener("close", () => {
    if (hash() in cells) history.replaceState(null, "", before || location.pathname + location.search);
  });
  drawer.addEventListener("click", (event) => { if (event.target === drawer) drawer.close(); });
  const goTo = (name) => {
    if (!(hash() in cells)) before = location.hash;
    history.pushState(null, "", `#${name}`);
    openCell(name);
  };
  document.addEventListener("click", (event) => {
    const place = event.target.closest?.("a[href^='#'], [data-cell]");
    const name = place && (place.dataset.cell ?? decodeURIComponent(place.hash.slice(1)));
    if (!name || !(name in cells) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goTo(name);
  });

  // -- what is wider than its place --------------------------------------------------------------

  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) target.classList.toggle("wide", target.scrollWidth > target.clientWidth);
  });
  for (const box of document.querySelectorAll(".scroll")) widths.observe(box);

  // -- the address -------------------------------------------------------------------------------

  const follow = () => {
    if (hash() in cells) return openCell(hash());
    if (drawer.open) drawer.close();
    if (/^comparisons(\?|$)/.test(hash())) {
      showComparisons();
      document.getElementById("comparisons")?.scrollIntoView();
    }
  };
  addEventListener("popstate", follow);
  showComparisons();
  follow();
})();
