// What the page can do with a script: judge by another reading, sort and filter the comparisons, open a cell in a drawer,
// give its tables as files, choose light or dark. Without it, every number is there to read, and the links lead to the
// lines of the runs.
(async () => {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const { cells, files, downloads, judging } = await new Response(inflated).json();
  Object.setPrototypeOf(cells, null);  // so that no address but a cell's name is in it
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
  const raw = () => location.hash.slice(1);
  const hash = () => { try { return decodeURIComponent(raw()); } catch { return raw(); } };
  // What follows the #. Mails and chats encode it whole, so it is decoded unless it is a query, which decodes its parts.
  const fragment = () => (/^(comparisons[?]|reading=)/.test(raw()) ? raw() : hash());

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
    const rows = [...body.rows].map((row) => ({ row }));
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

    const state = () => new URLSearchParams(fragment().startsWith("comparisons?") ? fragment().slice("comparisons?".length) : "");
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
      const words = (query.get("q") ?? "").toLowerCase().replace(/(^|\s)-(?=\d)/g, "$1−").split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row } of rows) {
        const text = words.length ? row.textContent.toLowerCase() : "";
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
      replaceAddress(addressOfComparisons(query));
      showComparisons();
    };
    for (const select of selects) select.addEventListener("change", () => change(select.name, select.value));
    search.addEventListener("input", () => change("q", search.value));
    reset.addEventListener("click", () => {
      replaceAddress(addressOfComparisons(new URLSearchParams()));
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

  // -- another reading -----------------------------------------------------------------------------

  const GLYPHS = { reproduced: "=", close: "≈", inconclusive: "?", differs: "≠", "not run": "·" };
  const kind = (verdict) => (verdict === "not run" ? "unrun" : verdict);
  const numbers = new Map();  // of the paper that were run, by the name of our cell
  for (const [cell, place, published, paperMean, paperStd, counted] of judging?.numbers ?? []) {
    const [, dataset, row, method] = place.match(/^([^/]+)[/](.+)[/]([^/]+)$/);
    numbers.set(cell, { cell, dataset, row, method, published, paperMean, paperStd, counted });
  }
  const epochsOf = judging?.choices.epochs.map(([value]) => value);
  // The name of the cell whose runs a reading takes for a number, whatever their training.
  const placeOf = ({ dataset, row, method }, { scope, loss }) => {
    const changed = [judging.changes.scope[scope], judging.changes.loss[loss]].map((own) => own?.[method] ?? method).filter((own) => own !== method);
    if (changed.length > 1) return undefined;  // nobody ran another scope with another loss
    return `${dataset}/${row}/${changed[0] ?? method}`;
  };
  const trialsOf = (number, state) => judging.statistics[state.training]?.[placeOf(number, state)]?.[epochsOf.indexOf(state.epochs)];
  const judge = (number, state) => {
    const trials = trialsOf(number, state);
    return trials ? { ...rule.judge(trials, number.paperMean, number.paperStd, state), trials } : { verdict: "not run", reason: "", trials: null, difference: null };
  };
  // A number of a dataset that the paper leaves open counts once, on the images that the reading takes.
  const counts = ({ dataset, published, counted }, { letters }) => {
    const ours = (judging.changes.letters[letters] ?? {})[published];
    return ours ? dataset === ours : counted;
  };
  const protocol = judging && { ...judging.chosen, ...judging.rule };
  let state = protocol;
  let verdicts = new Map([...numbers].map(([cell, number]) => [cell, judge(number, state)]));

  // As Python's verdict_words has it.
  const remark = (mark, { verdict, difference, reason, trials }) => {
    const words = verdict + (difference === null ? "" : ` (${signed(difference)} points; ${reason}; ${counted([trials[2]], "trial")})`);
    mark.className = `mark ${kind(verdict)}`;
    mark.title = words;
    mark.replaceChildren(GLYPHS[verdict], make("span", { className: "hidden-text", textContent: ` ${words}` }));
  };
  const ours = ({ trials }) => {
    if (!trials) return "not run";
    return trials[0] === null ? "diverged" : `${number(trials[0])}${trials[1] === null ? "" : ` ± ${number(trials[1])}`}`;
  };
  const interval = ({ low, high }) => (low === null || low === undefined ? "–" : `${signed(low)} to ${signed(high)}`);
  const byCell = (selector) => {
    const found = new Map();
    for (const link of document.querySelectorAll(selector)) {
      const name = decodeURIComponent(link.hash.slice(1));
      if (numbers.has(name)) found.set(name, [...(found.get(name) ?? []), link]);
    }
    return found;
  };
  const [marks, links] = [byCell("a.mark"), byCell("td a.ours")];

  const drawForest = (panel, own) => {
    const svg = panel.querySelector("svg");
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const span = Number(svg.dataset.span);
    const across = (difference) => (Math.max(-span, Math.min(span, difference)) / span + 1) * width / 2;
    const sorted = own.filter(([, { difference }]) => difference !== null).sort(([, a], [, b]) => b.difference - a.difference);
    const pitch = Math.min(Number(svg.dataset.pitch), height / Math.max(1, sorted.length));
    const tally = VERDICTS.map((name) => `${own.filter(([, { verdict }]) => verdict === name).length} ${name}`);
    svg.setAttribute("aria-label", `${svg.getAttribute("aria-label").split(":")[0]}: ${sorted.length} differences; ${tally.join(", ")}`);
    for (const mark of svg.querySelectorAll("g.forest")) mark.remove();
    [...svg.querySelectorAll(".forest-margin")].forEach((band, place) => {
      const half = (place ? state.margin : state.wider_margin) / span * width / 2;
      band.setAttribute("x", width / 2 - half);
      band.setAttribute("width", 2 * half);
    });
    sorted.forEach(([{ cell }, { verdict, difference, low, high }], place) => {
      const [x, y, beyond] = [across(difference), (place + 0.5) * pitch, (difference > span) - (difference < -span)];
      const shapes = {
        reproduced: () => draw("circle", { cx: x, cy: y, r: 1.8 }),
        close: () => draw("path", { d: `M${x} ${y}m-2.2 0l2.2 -2.2l2.2 2.2l-2.2 2.2z` }),
        inconclusive: () => draw("circle", { class: "hollow", cx: x, cy: y, r: 1.6 }),
        differs: () => draw("rect", { x: x - 1.6, y: y - 1.6, width: 3.2, height: 3.2 }),
      };
      const shape = beyond ? draw("path", { d: `M${x} ${y}l${-3.5 * beyond} -2v4z` }) : shapes[verdict]();
      svg.append(draw("g", { class: `forest ${kind(verdict)}`, "data-cell": cell },
        draw("title", {}, `${cell}: ${signed(difference)}, ${verdict}`),
        ...(low === null ? [] : [draw("path", { d: `M${across(low)} ${y}H${across(high)}` })]), shape));
    });
  };

  // -- the tables of a reading ---------------------------------------------------------------------

  const choicesInWords = () => Object.entries(judging.choices)
    .filter(([choice]) => state[choice] !== protocol[choice])
    .map(([choice, values]) => values.find(([value]) => value === state[choice])[1]).join(", ");

  const FLOAT32 = "float32";
  // The precisions of the runs that a reading counts for a number.
  const precisionsOf = (number) => {
    const runs = judging.runs[state.training]?.[placeOf(number, state)] ?? [];
    return new Set(runs.filter(({ accuracies }) => state.epochs in accuracies).map(({ precision }) => precision));
  };
  const precisionOf = (number, { trials }) => {
    const precisions = trials ? [...precisionsOf(number)] : [];
    if (precisions.length > 1) return "mixed precisions";
    return precisions[0] ?? FLOAT32;
  };
  const daggerOf = (precision) => {
    if (precision === FLOAT32) return [];
    const words = `in ${precision}`;
    return [make("abbr", { className: "precision", title: words }, "†", make("span", { className: "hidden-text", textContent: ` ${words}` }))];
  };
  // What the protocol's page says of a number: its link, and the trials that diverged beside it.
  const told = new Map([...links.values()].flat().map((link) => [link, {
    children: [...link.childNodes].map((node) => node.cloneNode(true)),
    note: link.parentElement.querySelector(".note"),
  }]));
  // Our number: the protocol's as it was written, another reading's from its trials.
  const showNumber = (link, number, found, reread) => {
    const { children, note } = told.get(link);
    if (note) note.hidden = reread;
    if (!reread) return link.replaceChildren(...children.map((node) => node.cloneNode(true)));
    const lost = found.trials?.[3] && found.trials[0] !== null ? ` (${found.trials[3]} diverged)` : "";
    link.replaceChildren(ours(found) + lost, ...daggerOf(precisionOf(number, found)));
  };

  const range = (values) => {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return least < most ? `${least} to ${most}` : `${most}`;
  };
  const counted = (values, word) => {
    const number = range(values);
    return `${number} ${word}${number === "1" ? "" : "s"}`;
  };
  const tables = [...document.querySelectorAll(".tabular")].map((section) => {
    const parts = new Map([...section.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
    const rows = [...section.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td a.ours")]);
    const bold = new Set(rows.flat().filter((link) => link.parentElement.classList.contains("best")));
    return { parts, words: new Map([...parts].map(([name, part]) => [name, part.textContent])), rows, bold };
  });
  // Caption and bold of a table; what no reading but the protocol was run for keeps the protocol's numbers, and says so.
  const showTable = ({ parts, words, rows, bold }, reread) => {
    for (const [name, part] of parts) part.textContent = words.get(name);
    for (const link of rows.flat()) {
      link.parentElement.classList.toggle("kept", reread && !told.has(link));
      link.parentElement.classList.toggle("best", bold.has(link));
    }
    if (!reread || !rows.flat().length) return;
    const say = (name, text) => { if (parts.has(name)) parts.get(name).textContent = text; };
    const nameOf = (link) => decodeURIComponent(link.hash.slice(1));
    const own = rows.flat().filter((link) => told.has(link));
    if (!own.length) return say("trials", `Under the protocol, not your reading, which these methods were not run under. ${words.get("trials")}`);

    const run = own.filter((link) => verdicts.get(nameOf(link)).trials);
    const epochs = judging.choices.epochs.find(([value]) => value === state.epochs)[1];
    const trials = run.length ? `over ${counted(run.map((link) => verdicts.get(nameOf(link)).trials[2]), "trial")}; epochs: ${epochs}` : "; none was run";
    const others = own.length < rows.flat().length ? " Shaded cells are the protocol’s: their methods were not run under other readings." : "";
    say("trials", `Under your reading, ${choicesInWords()}: test accuracy in percent, mean ± standard deviation ${trials}.${others}`);
    say("each", "");
    say("best", "The best method of a row is bold where all were run under the reading.");

    const precisions = run.map((link) => precisionOf(numbers.get(nameOf(link)), verdicts.get(nameOf(link)))).filter((precision) => precision !== FLOAT32);
    const kinds = [...new Set(precisions)].map((kind) => `${precisions.filter((precision) => precision === kind).length} of ${run.length} cells in ${kind}`);
    say("precision", kinds.length ? `Not trained in float32: ${kinds.join(", ")}.` : "");
    for (const row of rows) {
      const judged = row.filter((link) => told.has(link));
      const all = judged.map((link) => verdicts.get(nameOf(link)).trials);
      const means = all.map((trials) => Number(trials?.[0]?.toFixed(2) ?? NaN));  // missing if every trial diverged
      const best = Math.max(...means.filter((mean) => !Number.isNaN(mean)));
      judged.forEach((link, place) => link.parentElement.classList.toggle("best", all.every(Boolean) && means[place] === best));
      for (const link of row) if (!told.has(link)) link.parentElement.classList.remove("best");
    }
  };

  const PROPOSED = ["ure", "relu", "abs"];
  const headline = document.getElementById("headline");
  const sentence = headline.textContent;
  const show = () => {
    const reread = Object.keys(judging.choices).some((choice) => state[choice] !== protocol[choice]);
    const usual = Object.keys(protocol).every((key) => state[key] === protocol[key]);
    const tallies = new Map();
    const tally = (method, verdict) => {
      const own = tallies.get(method) ?? Object.fromEntries(VERDICTS.map((name) => [name, 0]));
      if (verdict in own) own[verdict] += 1;
      tallies.set(method, own);
    };
    for (const [cell, number] of numbers) {
      const found = verdicts.get(cell);
      if (counts(number, state)) tally(number.method, found.verdict);
      for (const mark of marks.get(cell) ?? []) remark(mark, found);
      for (const link of links.get(cell) ?? []) {
        const [place, row] = [link.closest("td"), link.closest("tr")];
        showNumber(link, number, found, reread);
        if (place.querySelector(".mark")) remark(place.querySelector(".mark"), found);
        if (place.querySelector(".difference")) place.querySelector(".difference").lastChild.data = signed(found.difference);
        if (!row.closest("#comparisons")) continue;
        const [verdict, difference, between, trials, why] = ["Verdict", "Difference", "Interval", "Trials", "Why"].map((label) => row.querySelector(`[data-label="${label}"]`));
        verdict.dataset.value = found.verdict;
        verdict.firstElementChild.className = `mark ${kind(found.verdict)}`;
        verdict.firstElementChild.textContent = GLYPHS[found.verdict];
        verdict.lastChild.data = ` ${found.verdict}`;
        difference.textContent = signed(found.difference);
        between.textContent = interval(found);
        trials.textContent = found.trials?.[2] ?? "–";
        why.textContent = found.reason;
      }
    }
    for (const bar of document.querySelectorAll(".bar")) {
      const own = tallies.get(bar.dataset.method);
      bar.setAttribute("aria-label", VERDICTS.map((verdict) => `${own[verdict]} ${verdict}`).join(", "));
      bar.replaceChildren(...VERDICTS.filter((verdict) => own[verdict]).map((verdict) => {
        const part = make("span", { className: verdict, textContent: `${GLYPHS[verdict]} ${own[verdict]}` });
        part.style.flexGrow = own[verdict];
        return part;
      }));
    }
    for (const panel of document.querySelectorAll("#forest [data-method]")) {
      drawForest(panel, [...numbers.values()].filter((one) => one.method === panel.dataset.method && counts(one, state)).map((one) => [one, verdicts.get(one.cell)]));
    }
    for (const table of tables) showTable(table, reread);
    const total = VERDICTS.map((verdict) => PROPOSED.reduce((sum, method) => sum + (tallies.get(method)?.[verdict] ?? 0), 0));
    const by = reread ? `Under your reading, ${choicesInWords()}` : "By your margins";
    const [reproduced, close, inconclusive, differ] = total;
    const judged = [...numbers].filter(([cell, number]) => PROPOSED.includes(number.method) && counts(number, state) && verdicts.get(cell).trials);
    const each = judged.length ? `, in ${counted(judged.map(([cell]) => verdicts.get(cell).trials[2]), "trial")} each` : "";
    headline.textContent = usual ? sentence : `${by}: of the ${judged.length} numbers of the paper that were run${each}, ${reproduced} are reproduced, ${close} close, ${inconclusive} inconclusive, and ${differ} differ.`;
    document.documentElement.classList.toggle("rejudged", !usual);
    document.documentElement.classList.toggle("reread", reread);  // by other runs or epochs, not by other margins alone
    for (const head of document.querySelectorAll("#readings-counts [data-chosen]")) {
      const chosen = { ...judging.rule, ...JSON.parse(head.dataset.chosen) };
      head.parentElement.setAttribute("aria-current", Object.keys(chosen).every((key) => chosen[key] === state[key]));
    }
    for (const part of document.querySelectorAll("[data-rule]")) part.textContent = { level: `${+(100 * state.level).toFixed(2)} %`, margin: state.margin, wider: state.wider_margin, twice: 2 * state.wider_margin }[part.dataset.rule];
    showComparisons();
  };

  // The reading and the rule as the address has them: where they depart from the protocol, as `epochs:all;loss:hinge`.
  const readingText = () => Object.keys(protocol ?? {}).filter((key) => state[key] !== protocol[key]).map((key) => `${key}:${state[key]}`).join(";");
  const BOUNDS = { margin: [0.1, 10], wider_margin: [0.1, 20], level: [0.51, 0.999] };
  // What a text asks for, and the parts of it that cannot be.
  const readReading = (text) => {
    const wanted = {};
    const refused = [];
    for (const part of text.split(";").filter(Boolean)) {
      const [key, value] = [part.slice(0, part.indexOf(":")), part.slice(part.indexOf(":") + 1)];
      if (key in BOUNDS && Number(value) >= BOUNDS[key][0] && Number(value) <= BOUNDS[key][1]) wanted[key] = Number(value);
      else if (Object.hasOwn(judging.choices, key) && judging.choices[key].some(([known]) => known === value)) wanted[key] = value;
      else refused.push(part);
    }
    const { margin, wider_margin: wider } = { ...protocol, ...wanted };
    if (wider < margin) {
      refused.push(`a margin of ${margin} with a wider one of ${wider}`);
      delete wanted.margin;
      delete wanted.wider_margin;
    }
    return { wanted, refused };
  };
  // What the address asks for: a reading, and the number that is open.
  const address = () => {
    if (!/^(comparisons[?]|reading=)/.test(fragment())) return { reading: null, number: fragment() };
    const query = new URLSearchParams(fragment().replace(/^comparisons[?]/, ""));
    return { reading: query.get("reading"), number: query.get("number") };
  };
  const opened = () => (address().number in cells ? address().number : null);
  const plain = (text) => encodeURIComponent(text).replaceAll("%3A", ":").replaceAll("%3B", ";").replaceAll("%2F", "/").replaceAll("%2C", ",").replaceAll("%20", "+");
  const addressOf = (number) => {
    if (!readingText()) return `#${number ?? ""}`;
    return `#reading=${plain(readingText())}${number ? `&number=${number}` : ""}`;
  };
  const addressOfComparisons = (query) => {
    query.delete("reading");
    if (readingText()) query.set("reading", readingText());
    return `#comparisons${query.size ? `?${query}` : ""}`;
  };
  // An entry of the history remembers its reading, which an address such as #verdict does not name.
  // The entry also has its depth, how many entries of open numbers lead to it, which closing the drawer goes back over.
  const entry = (depth = history.state?.depth) => ({ reading: readingText(), depth });
  const replaceAddress = (address) => history.replaceState(entry(), "", address);
  let choose = () => {};

  const form = document.getElementById("judging");
  if (form && judging) {
    const TITLES = { epochs: "Epochs", scope: "Correction of", loss: "Loss", letters: "Letters", training: "Draws and training" };
    const inputs = {};
    const control = (name, words, input) => {
      inputs[name] = input;
      input.name = name;
      form.append(make("label", {}, words, input));
    };
    for (const [choice, values] of Object.entries(judging.choices)) {
      if (values.length < 2) continue;
      control(choice, TITLES[choice], make("select", {}, ...values.map(([value, textContent]) => make("option", { value, textContent }))));
    }
    for (const [name, words, min, max] of [["margin", "Margin", 0.1, 10], ["wider_margin", "Wider margin", 0.1, 20], ["level", "Level, %", 51, 99.9]]) {
      control(name, words, make("input", { type: "number", min, max, step: "any", required: true }));
    }
    const write = () => {
      for (const [name, input] of Object.entries(inputs)) input.value = name === "level" ? +(100 * state.level).toFixed(2) : state[name];
    };
    const set = (wanted) => {
      state = { ...protocol, ...wanted };
      fault.textContent = "";
      verdicts = new Map([...numbers].map(([cell, number]) => [cell, judge(number, state)]));
      show();
    };
    let telling = 0;
    const fault = make("output", { className: "fault" });
    const faultOf = () => {
      const input = Object.values(inputs).find((input) => !input.checkValidity());
      if (input) return `${input.parentElement.firstChild.data} must be a number from ${input.min} to ${input.max}. The verdicts are unchanged.`;
      if (Number(inputs.wider_margin.value) < Number(inputs.margin.value)) return "Wider margin must be at least as large as Margin. The verdicts are unchanged.";
      return "";
    };
    form.addEventListener("input", () => {
      fault.textContent = faultOf();
      if (fault.textContent) return;
      const read = ([name, input]) => [name, name === "level" ? input.value / 100 : input.type === "number" ? Number(input.value) : input.value];
      set(Object.fromEntries(Object.entries(inputs).map(read)));
      clearTimeout(telling);
      telling = setTimeout(tell, 200);  // browsers limit how often an address changes
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    // A view of the comparisons keeps its address, with the reading in it.
    const tell = () => {
      if (!fragment().startsWith("comparisons")) return replaceAddress(addressOf(null));
      replaceAddress(addressOfComparisons(new URLSearchParams(fragment().split("?")[1] ?? "")));
    };
    choose = (wanted, refused = []) => {
      set(wanted);
      write();
      if (refused.length) fault.textContent = `The address asks for what cannot be: ${refused.join(", ")}. It is left out.`;
    };
    const usual = make("button", { type: "button", textContent: "As the protocol" });
    usual.addEventListener("click", () => { choose({}); tell(); });
    form.append(usual, fault);
    for (const head of document.querySelectorAll("#readings-counts [data-chosen]")) {
      const button = make("button", { type: "button", title: "Judge by this reading", textContent: head.textContent });
      button.addEventListener("click", () => { choose(JSON.parse(head.dataset.chosen)); tell(); });
      head.replaceChildren(button);
    }
    write();
  }

  // -- the drawer --------------------------------------------------------------------------------

  const strip = (trials, paper) => {
    const values = trials.map(([, accuracy]) => accuracy).filter((accuracy) => accuracy !== null);
    if (paper) values.push(paper.paperMean);
    if (!values.length) return make("p", { textContent: "Every trial diverged." });
    const [low, high] = [Math.floor(Math.min(...values) - 1), Math.ceil(Math.max(...values) + 1)];
    const x = (value) => 10 + (value - low) / (high - low) * 380;
    const svg = draw("svg", { class: "strip", viewBox: "0 0 400 40", role: "img" },
      draw("path", { class: "axis", d: "M10 20H390" }),
      draw("text", { x: 10, y: 38 }, `${low} %`), draw("text", { x: 390, y: 38, "text-anchor": "end" }, `${high} %`));
    if (paper) svg.append(draw("path", { class: "published", d: `M${x(paper.paperMean)} 8V32` }));
    for (const [seed, accuracy] of trials) {
      if (accuracy !== null) svg.append(draw("circle", { class: "trial", cx: x(accuracy), cy: 20, r: 5 }, draw("title", {}, `seed ${seed}: ${number(accuracy)} %`)));
    }
    svg.setAttribute("aria-label", `Trials at ${trials.map(([, accuracy]) => number(accuracy)).join(", ")} %${paper ? `; the paper's mean at ${number(paper.paperMean)} %` : ""}`);
    return svg;
  };

  const arithmetic = (paper) => {
    if (!paper) return [make("p", { textContent: "The paper has no such cell." })];
    const found = verdicts.get(paper.cell);
    const [, , trials, diverged] = found.trials ?? [];
    const facts = [
      ["Verdict", found.verdict],
      ["Ours", `${ours(found)}${trials ? ` %, ${counted([trials], "trial")}${diverged ? `, ${diverged} diverged` : ""}` : ""}`],
      ["The paper’s", `${number(paper.paperMean)} ± ${number(paper.paperStd)} %, 3 trials`],
      ...(trials ? [["Difference", `${signed(found.difference)} points`], ["Interval", interval(found)], ["Reason", found.reason]] : []),
    ];
    return [make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]))];
  };

  const scrolled = (label, child) => {
    const box = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: label }, child);
    widths.observe(box);
    return box;
  };

  // The verdicts on one number under every reading that has trials of it: trainings, scopes and losses down, epochs across.
  const underReadings = (paper) => {
    if (!paper) return [];
    const { epochs, training } = judging.choices;
    const changed = ["scope", "loss"].flatMap((choice) => judging.choices[choice]
      .filter(([value]) => value !== protocol[choice] && paper.method in judging.changes[choice][value])
      .map(([value, title]) => ({ [choice]: value, title })));
    const usual = { scope: protocol.scope, loss: protocol.loss };
    const rows = training.flatMap(([trained, words]) => [{}, ...changed].map(({ title, ...change }) => ({
      title: [words, ...(title ? [title] : [])].join(", "),
      found: epochs.map(([epoch]) => judge(paper, { ...state, ...usual, ...change, training: trained, epochs: epoch })),
    }))).filter(({ found }) => found.some(({ trials }) => trials));
    const all = rows.flatMap(({ found }) => found).filter(({ trials }) => trials);
    const reproduced = all.filter(({ verdict }) => verdict === "reproduced").length;
    const cell = (found) => { const mark = make("span"); remark(mark, found); return make("td", {}, mark); };
    const trialsOf = (found) => range(found.filter(({ trials }) => trials).map(({ trials }) => trials[2]));
    return [
      make("h3", { textContent: "Under other readings" }),
      make("p", { className: "quiet", textContent: `Reproduced under ${reproduced} of ${all.length} readings, each by all of its trials, at the margins and the level that are set.` }),
      scrolled("Verdicts under other readings", make("table", { className: "grid" },
        make("thead", {}, make("tr", {}, make("th", { scope: "col", className: "name", textContent: "Drawn, trained" }), make("th", { scope: "col", textContent: "trials" }), ...epochs.map(([, words]) => make("th", { scope: "col", textContent: words })))),
        make("tbody", {}, ...rows.map(({ title, found }) => make("tr", {}, make("th", { scope: "row", textContent: title }), make("td", { textContent: trialsOf(found) }), ...found.map(cell)))))),
    ];
  };

  const fileOf = new Map(Object.values(cells).flatMap(({ trials }) => trials.map(([, , key, place]) => [key, files[place]])));

  // The runs of a cell that the chosen reading counts: those of the page's own results, or of another training.
  const TRAINED = ["training", "scope", "loss", "epochs"];  // what decides which runs and epochs are shown
  const runsShown = (name) => {
    const { epochs, trials, curve } = cells[name];
    const paper = numbers.get(name);
    if (!paper || TRAINED.every((key) => state[key] === protocol[key])) {
      const told = trials.map(([seed, accuracy, key, place, origin]) => ({ seed, accuracy, key, file: files[place], trained: trainedBy(origin) }));
      return { epochs, trials: told, curve, commands: [`./run trace ${name}`, ...trials.map(([seed]) => `./run retrain ${name}/seed${seed}`)] };
    }
    const runs = judging.runs[state.training]?.[placeOf(paper, state)] ?? [];
    const [dataset, ...rest] = placeOf(paper, state)?.split("/") ?? [];
    const cell = [dataset, judging.variants[state.training], ...rest].join("/");  // its name, as `./run trace` takes it
    const counted = runs.filter(({ accuracies }) => state.epochs in accuracies);
    return {
      epochs: judging.choices.epochs.find(([value]) => value === state.epochs)[1],
      trials: counted.map(({ seed, accuracies, key, device, precision, day }) => ({
        seed, key, file: fileOf.get(key), accuracy: accuracies[state.epochs], trained: `${precision} on ${device}, ${day}`,
      })),
      curve: curveOf(counted),
      commands: [`./run trace ${cell}`, ...counted.map(({ seed }) => `./run retrain ${cell}/seed${seed}`)],
    };
  };
  const curveOf = (runs) => {
    const values = runs.flatMap(({ curve }) => curve).filter((value) => value !== null);
    const last = runs.length ? runs[0].epochs : 0;
    if (!values.length) return { lines: [], low: 0, high: 100, first: 1, last };
    const [low, high] = [5 * Math.floor(Math.min(...values) / 5), 5 * Math.floor(Math.max(...values) / 5) + 5];
    const point = (value, place, { length }) => (value === null ? [] : [`${Math.round(place / Math.max(1, length - 1) * 200)},${Math.round(100 - (value - low) / (high - low) * 100)}`]);
    return { lines: runs.map(({ curve }) => curve.flatMap(point).join(" ")), low, high, first: 1, last };
  };

  // Which reading a panel is of; nothing under the protocol.
  const readingOf = (paper) => {
    const other = choicesInWords();
    if (!other) return "";
    if (!paper) return "Under the protocol, not your reading, under which this was not run.";
    const apart = counts(paper, state) ? "" : " It takes other images for this number of the paper, so these are not counted.";
    return `Under the reading: ${other}.${apart}`;
  };

  const fill = (name) => {
    const { title } = cells[name];
    const paper = numbers.get(name);
    const { epochs, trials, curve: { lines, low, high, first, last }, commands } = runsShown(name);
    const curve = draw("svg", { class: "curve", viewBox: "0 0 200 100", role: "img", "aria-label": `Test accuracy by epoch, from ${low} to ${high} %` },
      ...lines.map((points) => draw("polyline", { points })));
    const seeds = trials.map(({ seed }) => make("li", {}, draw("svg", { viewBox: "0 0 35 10", "aria-hidden": true }, draw("path", { d: "M0 5H35" })), `seed ${seed}`));
    const shut = make("button", { type: "button", className: "shut", textContent: "Close", autofocus: true });
    shut.addEventListener("click", () => drawer.close());
    const reading = readingOf(paper);
    const trained = trials.flatMap(({ seed, accuracy, key, file, trained }) => [
      make("dt", { textContent: `Seed ${seed}` }),
      make("dd", {}, `${accuracy === null ? "diverged" : `${number(accuracy)} %`}, ${trained}; `, make("code", { textContent: key }), ...(file ? [" in ", make("code", { textContent: file })] : [])),
    ]);
    const told = trials.length ? [
      make("h3", { textContent: "Trials" }),
      strip(trials.map(({ seed, accuracy }) => [seed, accuracy]), paper),
      make("p", { className: "quiet", textContent: `A dot is the accuracy of a trial, ${epochs}${paper ? "; the line is the paper’s mean" : ""}.` }),
      make("h3", { textContent: "Test accuracy by epoch" }),
      make("div", { className: "axis" }, make("span", { textContent: `${high} %` })),
      curve,
      make("div", { className: "axis" }, make("span", { textContent: `${low} %, epoch ${first}` }), make("span", { textContent: `epoch ${last}` })),
      make("ul", { className: "seeds" }, ...seeds),
    ] : [make("p", { textContent: "Nobody ran this number under this reading." })];
    drawer.replaceChildren(
      shut,
      make("h2", { id: "drawer-title", textContent: title }),
      ...(reading ? [make("p", { className: "reading", textContent: reading })] : []),
      ...arithmetic(paper),
      ...told,
      ...underReadings(paper),
      ...(trials.length ? [make("h3", { textContent: "Where it comes from" }), make("dl", {}, ...trained)] : []),
      ...(trials.length ? [make("h3", { textContent: "Trace it, train it again" }), make("pre", { textContent: commands.join("\n") }), ...overEpochs(paper)] : []),
    );
  };
  // A reading of other epochs takes the same runs, of which the commands print what the protocol does.
  const overEpochs = (paper) => {
    if (!paper || state.epochs === protocol.epochs) return [];
    const words = judging.choices.epochs.find(([value]) => value === protocol.epochs)[1];
    return [make("p", { className: "quiet", textContent: `The commands print accuracies by the protocol’s epochs: ${words}.` })];
  };
  const origins = new Map([...document.querySelectorAll("#training tbody tr")].map((row) =>
    [row.cells[0].textContent, `${row.cells[2].firstChild.textContent} on ${row.cells[1].textContent}, ${row.cells[3].textContent}`]));
  const trainedBy = (letter) => origins.get(letter) ?? "not recorded";

  const openCell = (name) => {
    fill(name);
    if (!drawer.open) drawer.showModal();
    drawer.scrollTop = 0;
  };
  drawer.addEventListener("close", () => {
    if (!opened()) return;
    if (history.state?.depth) history.go(-history.state.depth);
    else replaceAddress(readingText() ? addressOf(null) : location.pathname + location.search);  // the page was opened at it
  });
  drawer.addEventListener("click", (event) => { if (event.target === drawer) drawer.close(); });
  const goTo = (name) => {
    const depth = opened() ? history.state?.depth && history.state.depth + 1 : 1;
    history.pushState(entry(depth), "", addressOf(name));
    openCell(name);
  };
  document.addEventListener("click", (event) => {
    const place = event.target.closest?.("a[href^='#'], [data-cell]");
    const name = place && (place.dataset.cell ?? decodeURIComponent(place.hash.slice(1)));  // of our own links
    if (!name || !(name in cells) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goTo(name);
  });

  // -- what is wider than its place --------------------------------------------------------------

  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) target.classList.toggle("wide", target.scrollWidth > target.clientWidth);
  });
  for (const box of document.querySelectorAll(".scroll")) widths.observe(box);

  // -- files ---------------------------------------------------------------------------------------

  for (const link of document.querySelectorAll("a[download]")) {
    link.addEventListener("click", () => { link.href = URL.createObjectURL(new Blob([downloads[link.download]], { type: "text/plain" })); });
  }

  // -- the address -------------------------------------------------------------------------------

  const follow = () => {
    const reading = address().reading ?? history.state?.reading ?? readingText();
    if (reading !== readingText()) {
      const { wanted, refused } = readReading(reading);
      choose(wanted, refused);
    }
    replaceAddress();
    if (opened()) return openCell(opened());
    if (drawer.open) drawer.close();
    if (/^comparisons([?]|$)/.test(fragment())) {
      document.querySelector("#comparisons details").open = true;
      showComparisons();
      document.getElementById("comparisons")?.scrollIntoView();
    }
  };
  addEventListener("popstate", follow);
  const folded = document.querySelector("#comparisons details");
  if (folded && matchMedia("(max-width: 45rem)").matches) folded.open = false;
  showComparisons();
  follow();
  document.documentElement.dataset.ready = "";
})();
