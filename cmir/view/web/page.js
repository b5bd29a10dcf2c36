// The page: draws what model.js computes, and says why. Text is set by textContent alone: no name can become markup.

const byId = (id) => document.getElementById(id);

function element(tag, text = "", className = "") {
  const out = document.createElement(tag);
  out.textContent = text;
  if (className) out.className = className;
  return out;
}

const state = { values: structuredClone(start.values), colour: "rows", tile: start.tile, cell: null, pinned: false };
let $ = null;
let pictures = {};

const colourOf = (number) => style.palette[number % style.palette.length];
const clauseNumbers = new Map();
for (const region of mask.regions) for (const c of region.clauses) clauseNumbers.set(c.name, clauseNumbers.size);

function compute() {
  $ = environment(mask, state.values);
  const visible = visiblePairs(mask, $);
  pictures = { visible };
  for (const axis of Object.keys(mask.tables)) pictures[axis] = slotsOfPairs(mask, $, axis);
  const regions = regionsOfRows(mask, $);
  pictures.clauses = visible.map((k, at) => {
    if (k < 0) return -1;
    const region = mask.regions[regions[Math.floor(at / $.cols)]];
    return clauseNumbers.get(region.clauses[k].name);
  });
}

// The board.

const margin = 30;
const cellSize = Math.max(2, Math.min(26, Math.floor(660 / Math.max(start.values.rows, start.values.cols, 1))));

function sizeCanvases() {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [margin + $.cols * cellSize + 1, margin + $.rows * cellSize + 1];
  for (const canvas of [byId("board"), byId("over")]) {
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }
}

function draw() {
  const context = byId("board").getContext("2d");
  context.clearRect(0, 0, byId("board").width, byId("board").height);
  const gap = cellSize >= 8 ? 1 : 0;
  const shown = pictures[state.colour === "tiles" ? "visible" : state.colour];
  for (let i = 0; i < $.rows; i += 1) {
    for (let j = 0; j < $.cols; j += 1) {
      const at = i * $.cols + j;
      const seen = shown[at] >= 0;
      context.fillStyle = !seen ? style.hidden : state.colour === "tiles" ? "#5b8db8" : colourOf(shown[at]);
      context.fillRect(margin + j * cellSize, margin + i * cellSize, cellSize - gap, cellSize - gap);
      if (seen !== pictures.visible[at] >= 0) {  // facts are broken, and the compiled form says something else
        context.fillStyle = "#d1242f";
        context.fillRect(margin + j * cellSize, margin + i * cellSize, cellSize - gap, Math.max(2, cellSize / 4));
      }
    }
  }
  drawAxes(context);
  drawTiles(context);
}

function drawAxes(context) {
  context.fillStyle = style.ink;
  context.font = "11px system-ui, sans-serif";
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => n * cellSize >= 26);
  context.textAlign = "center";
  for (let j = 0; j < $.cols; j += step) context.fillText(j, margin + (j + 0.5) * cellSize, margin - 6);
  context.textAlign = "right";
  for (let i = 0; i < $.rows; i += step) context.fillText(i, margin - 6, margin + (i + 0.5) * cellSize + 4);
}

function drawTiles(context) {
  const [height, width] = state.tile;
  context.lineWidth = 1;
  if (state.colour === "tiles") {
    const states = tileStates($, pictures.visible, state.tile);
    states.forEach((line, m) =>
      line.forEach((kind, n) => {
        const [x, y] = [margin + n * width * cellSize, margin + m * height * cellSize];
        const w = Math.min(width, $.cols - n * width) * cellSize;
        const h = Math.min(height, $.rows - m * height) * cellSize;
        context.fillStyle = ["#ffffffb0", "#f3c96980", "#3f7fb5e0"][kind];
        context.fillRect(x, y, w, h);
      }),
    );
  }
  context.strokeStyle = state.colour === "tiles" ? "#1f2328" : "#1f232855";
  for (let y = height; y < $.rows; y += height) line(context, margin, margin + y * cellSize, $.cols * cellSize, 0);
  for (let x = width; x < $.cols; x += width) line(context, margin + x * cellSize, margin, 0, $.rows * cellSize);
}

function line(context, x, y, dx, dy) {
  context.beginPath();
  context.moveTo(x - 0.5, y - 0.5);
  context.lineTo(x + dx - 0.5, y + dy - 0.5);
  context.stroke();
}

function drawOver() {
  const canvas = byId("over");
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  if (!state.cell) return;
  const [i, j] = state.cell;
  const box = (x, y, w, h, colour, thick) => {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(margin + x * cellSize - 0.5, margin + y * cellSize - 0.5, w * cellSize, h * cellSize);
  };
  box(0, i, $.cols, 1, "#1f232880", 1);
  box(j, 0, 1, $.rows, "#1f232880", 1);
  box(j, i, 1, 1, "#1f2328", 2.5);
}

// What is said beside it.

function text(parent, tag, words, className) {
  return parent.appendChild(element(tag, words, className));
}

function chip(number) {
  const out = element("span", "", "chip");
  out.style.background = colourOf(number);
  return out;
}

function showLegend() {
  const out = byId("legend");
  out.replaceChildren();
  const entries = [];
  if (state.colour === "tiles") {
    ["empty", "partial", "full"].forEach((name, k) => entries.push([["#ffffff", "#f3c969", "#3f7fb5"][k], name]));
  } else if (state.colour === "clauses") {
    for (const [name, number] of clauseNumbers) entries.push([colourOf(number), name]);
  } else {
    for (const region of mask.tables[state.colour].regions) {
      region.spans.forEach((span, k) => entries.push([colourOf(span.number), `@${region.name} slot ${k}`]));
    }
  }
  for (const [colour, name] of entries.slice(0, 40)) {
    const item = text(out, "span", "");
    const mark = text(item, "span", "", "chip");
    mark.style.background = colour;
    mark.style.border = "1px solid #0002";
    item.append(name);
  }
}

function showSummary() {
  const total = $.rows * $.cols;
  let seen = 0;
  for (const k of pictures.visible) seen += k >= 0;
  const share = total ? ((100 * seen) / total).toFixed(1) : "0";
  byId("summary").textContent = `${$.rows} rows, ${$.cols} columns; ${seen} of ${total} pairs visible (${share} %)`;
  const broken = brokenFacts(mask, $);
  const facts = byId("facts");
  facts.className = broken.length ? "broken" : "faint";
  const noun = { row: "row", col: "column", entry: "entry" };
  const say = (b) => b.text + (b.index === null ? "" : `, at ${noun[b.kind]} ${b.index}`);
  facts.textContent = !mask.facts.length
    ? "The spec states no facts."
    : broken.length
      ? `These metadata break: ${broken.map(say).join("; ")}. Intervals hold under the facts only; a red edge marks a pair where they and the rule differ.`
      : `All ${mask.facts.length} facts hold.`;
}

const FEW = 4; // clauses that are shown in full though they fail; of more, the literal that fails first

function showClause(out, clause, brief) {
  text(out, "div", `clause ${clause.name} ${clause.holds ? "holds" : "fails"}`, `clause ${clause.holds ? "yes" : "no"}`);
  const table = text(out, "table", "", "mono");
  const all = brief && !clause.holds ? [clause.literals.find((l) => !l.holds)] : clause.literals;
  for (const literal of all) {
    const row = text(table, "tr", "");
    text(row, "td", literal.holds ? "yes" : "no", literal.holds ? "yes" : "no");
    text(row, "td", literal.text);
    text(row, "td", literal.numbers, "faint");
  }
}

function showCell() {
  const out = byId("cell");
  out.replaceChildren();
  drawOver();
  for (const row of document.querySelectorAll(".lines tr.now")) row.classList.remove("now");
  if (!state.cell) {
    text(out, "div", "Point at a pair to see why it is visible, or not. A click keeps it; arrow keys move.", "faint");
    mark([], "live");
    return;
  }
  const said = explainPair(mask, $, ...state.cell);
  const head = text(out, "div", `row ${said.i}, column ${said.j}  `, "head");
  text(head, "span", said.visible ? "visible" : "not visible", said.visible ? "badge seen" : "badge hidden");
  if (said.region === null) {
    text(out, "div", `No Region holds row ${said.i}: it sees nothing.`);
  } else {
    text(out, "div", `Region @${said.region}, rows ${said.guard}`);
  }
  for (const clause of said.clauses) showClause(out, clause, said.clauses.length > FEW);
  for (const axis of Object.keys(said.slots)) {
    const [line, other] = axis === "rows" ? [said.i, `column ${said.j}`] : [said.j, `row ${said.i}`];
    text(out, "div", axis === "rows" ? `columns that row ${line} sees` : `rows that see column ${line}`, "clause");
    const table = text(out, "table", "", "mono");
    const slots = said.slots[axis];
    for (const slot of slots.length > 2 * FEW ? slots.filter((s) => s.lo < s.hi) : slots) {
      const row = text(table, "tr", "");
      text(row, "td", "").append(...slot.parts.map((span) => chip(span.number)), `slot ${slot.slot}`);
      text(row, "td", slot.lo < slot.hi ? `[${slot.lo}, ${slot.hi})` : "empty");
      text(row, "td", [slot.holds ? `holds ${other}` : "", slot.why].filter(Boolean).join(", "), "faint");
      text(row, "td", slot.parts.map((span) => span.text).join(" and "), "faint");
    }
    const now = byId(`${axis}-${line}`);
    if (now) {
      now.classList.add("now");
      const list = now.closest(".lines");
      list.scrollTop = now.offsetTop - list.clientHeight / 2;
    }
  }
  mark(said.clauses.filter((c) => c.holds).map((c) => c.name), "live");
}

function showLists() {
  for (const axis of Object.keys(mask.tables)) {
    const table = byId(`list-${axis}`);
    table.replaceChildren();
    const lines = axis === "rows" ? $.rows : $.cols;
    for (let k = 0; k < lines; k += 1) {
      const row = text(table, "tr", "");
      row.id = `${axis}-${k}`;
      text(row, "td", k);
      const cell = text(row, "td", "");
      const live = slotsOfLine(mask, $, axis, k).filter((s) => s.lo < s.hi);
      if (!live.length) cell.textContent = "sees nothing";
      if (!live.length && axis === "cols") cell.textContent = "is seen by no row";
      for (const slot of live) {
        const rest = slot.span.residual ? ` where ${slot.span.residual.text}` : "";
        cell.append(...slot.parts.map((span) => chip(span.number)), `[${slot.lo}, ${slot.hi})${rest}   `);
      }
    }
  }
}

function showFormulas() {
  for (const axis of Object.keys(mask.tables)) {
    const out = byId(`formulas-${axis}`);
    for (const region of mask.tables[axis].regions) {
      text(out, "li", `@${region.name} ${region.text}`, "faint");
      for (const span of region.spans) {
        const item = text(out, "li", "");
        const rest = ["when", "residual"].map((k) => (span[k] ? ` ${k} ${span[k].text}` : "")).join("");
        item.append(chip(span.number), `${span.text}${rest}  from ${span.origins.join(", ")}`);
      }
    }
  }
}

// Stages: lines that come from the same clause are marked together.

const lines = [...document.querySelectorAll(".stage .line")].map((node) => ({
  node,
  keys: (node.dataset.keys || "").split(" ").filter(Boolean),
}));

function mark(keys, className) {
  const wanted = new Set(keys);
  for (const { node, keys: mine } of lines) node.classList.toggle(className, mine.some((k) => wanted.has(k)));
}

for (const { node, keys } of lines) {
  if (!keys.length) continue;
  node.addEventListener("mouseenter", () => mark(keys, "mark"));
  node.addEventListener("mouseleave", () => mark([], "mark"));
}

// Metadata.

function problem(words) {
  byId("problem").textContent = words;
}

function parseTable(parameter, words) {
  const parsed = JSON.parse(words.trim().startsWith("[") ? words : `[${words}]`);
  const entry = (x) =>
    parameter.entries ? Array.isArray(x) && x.length === parameter.entries && x.every(Number.isInteger) : Number.isInteger(x);
  if (!parsed.every(entry)) throw new Error("entries are integers" + (parameter.entries ? ` in lists of ${parameter.entries}` : ""));
  const length = { row: $.rows, col: $.cols }[parameter.kind];
  if (length !== undefined && parsed.length !== length) throw new Error(`${length} entries are needed, not ${parsed.length}`);
  if (!parsed.length && length === undefined) throw new Error("at least one entry is needed");
  return parsed;
}

function showMetadata() {
  const out = byId("metadata");
  out.replaceChildren();
  for (const parameter of mask.parameters) {
    if (parameter.kind === "scalar") {
      const row = text(out, "div", "", "scalar");
      text(row, "label", parameter.name, "mono");
      const [slider, number] = ["range", "number"].map((type) => {
        const input = row.appendChild(document.createElement("input"));
        Object.assign(input, { type, step: 1 });
        input.setAttribute("aria-label", parameter.name);
        return input;
      });
      const value = state.values[parameter.name];
      [slider.min, slider.max] = [Math.min(0, value), Math.max($.rows, $.cols, 2 * value)];
      [slider.value, number.value] = [value, value];
      for (const [input, other] of [[slider, number], [number, slider]]) {
        input.addEventListener("input", () => {
          if (!/^-?\d+$/.test(input.value)) return;
          other.value = input.value;
          change(parameter.name, Number(input.value));
        });
      }
    } else {
      const row = text(out, "div", "", "table");
      text(row, "label", `${parameter.name} `, "mono").append(element("span", `per ${parameter.kind}`, "faint"));
      const area = row.appendChild(document.createElement("textarea"));
      area.spellcheck = false;
      area.setAttribute("aria-label", parameter.name);
      const value = state.values[parameter.name];
      area.value = parameter.entries ? JSON.stringify(value) : value.join(", ");
      area.addEventListener("input", () => {
        try {
          change(parameter.name, parseTable(parameter, area.value));
        } catch (error) {
          problem(`${parameter.name}: ${error.message}`);
        }
      });
    }
  }
  if (!mask.parameters.length) text(out, "div", "The mask has no metadata.", "faint");
}

function change(name, value) {
  state.values[name] = value;
  refresh();
}

function refresh() {
  try {
    compute();
    problem("");
  } catch (error) {
    problem(error.message);
    return;
  }
  draw();
  showSummary();
  showLists();
  showLegend();
  showCell();
}

// Start.

function pick(event) {
  const box = byId("over").getBoundingClientRect();
  const [j, i] = [event.clientX - box.left, event.clientY - box.top].map((x) => Math.floor((x - margin) / cellSize));
  return i >= 0 && j >= 0 && i < $.rows && j < $.cols ? [i, j] : null;
}

byId("over").addEventListener("mousemove", (event) => {
  if (state.pinned) return;
  state.cell = pick(event);
  showCell();
});
byId("over").addEventListener("mouseleave", () => {
  if (state.pinned) return;
  state.cell = null;
  showCell();
});
byId("over").addEventListener("click", (event) => {
  const cell = pick(event);
  state.pinned = cell !== null && !(state.pinned && state.cell && cell.join() === state.cell.join());
  state.cell = cell;
  showCell();
});
byId("over").addEventListener("keydown", (event) => {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!step || !$.rows || !$.cols) return;
  event.preventDefault();
  const [i, j] = state.cell || [0, 0];
  const within = (x, n) => Math.min(Math.max(x, 0), n - 1);
  state.pinned = true;
  state.cell = [within(i + step[0], $.rows), within(j + step[1], $.cols)];
  showCell();
});
for (const input of document.querySelectorAll("input[name=colour]")) {
  input.addEventListener("change", () => {
    state.colour = input.value;
    draw();
    showLegend();
  });
}
byId("tile").addEventListener("input", () => {
  const found = /^\s*(\d+)\s*(?:[,x]\s*(\d+)\s*)?$/.exec(byId("tile").value);
  if (!found || Number(found[1]) < 1 || Number(found[2] ?? found[1]) < 1) return;
  state.tile = [Number(found[1]), Number(found[2] ?? found[1])];
  draw();
});
byId("reset").addEventListener("click", () => {
  state.values = structuredClone(start.values);
  showMetadata();
  refresh();
});

compute();
sizeCanvases();
showMetadata();
showFormulas();
refresh();
