// What a mask means, in a browser: the same evaluation as cmir's NumPy interpreter, which tests compare it with.
// `mask` is the object that cmir/view/javascript.py writes; `$` gives rows, cols, scalars (numbers) and tables (arrays).

function exact(x) {
  if (!Number.isSafeInteger(x)) throw new RangeError("a number of this mask is too large for a browser");
  return x;
}

const add = (a, b) => exact(a + b);
const sub = (a, b) => exact(a - b);
const mul = (a, b) => exact(a * b);

function mod(a, k) {  // never negative; a division by less than 1 is one by 1
  k = Math.max(k, 1);
  const r = a % k;
  return r < 0 ? r + k : r;
}

const floordiv = (a, k) => (a - mod(a, k)) / Math.max(k, 1);

function isqrt(a) {
  let r = Math.floor(Math.sqrt(a));
  while (r * r > a) r -= 1;
  while ((r + 1) * (r + 1) <= a) r += 1;
  return r;
}

function lookup(table, index, number) {  // the nearest entry; an empty table reads 0
  if (!table.length) return 0;
  const entry = table[Math.min(Math.max(index, 0), table.length - 1)];
  return number === undefined ? entry : entry[Math.min(Math.max(number, 0), entry.length - 1)];
}

function exists(lo, hi, holds) {
  for (let k = lo; k <= hi; k += 1) if (holds(k)) return true;
  return false;
}

function first(lo, hi, holds) {
  for (let k = lo; k < hi; k += 1) if (holds(k)) return k;
  return hi;
}

// The metadata as expressions read them: with the lengths of free tables.
function environment(mask, values) {
  const $ = Object.assign(Object.create(null), values);
  for (const p of mask.parameters) if (p.kind === "free") $[`${p.name}_length`] = values[p.name].length;
  return $;
}

// The facts that the metadata break: [{text, index}], index being null for a fact about scalars.
function brokenFacts(mask, $) {
  const out = [];
  for (const fact of mask.facts) {
    if (fact.kind === "scalar") {
      if (!fact.holds($)) out.push({ text: fact.text, index: null, kind: fact.kind });
      continue;
    }
    const extent =
      fact.kind === "row" ? $.rows : fact.kind === "col" ? $.cols : Math.max(0, ...fact.tables.map((t) => $[t].length));
    const end = Math.min(fact.hi($), extent);
    for (let index = Math.max(fact.lo($), 0); index < end; index += 1) {
      if (!fact.holds($, index)) {
        out.push({ text: fact.text, index, kind: fact.kind });
        break;
      }
    }
  }
  return out;
}

// Int32Array [rows]: the Region that holds each row, -1 where none does.
function regionsOfRows(mask, $) {
  const out = new Int32Array($.rows).fill(-1);
  mask.regions.forEach((region, number) => {
    const hi = Math.min(region.hi($), $.rows);
    for (let i = Math.max(region.lo($), 0); i < hi; i += 1) out[i] = number;
  });
  return out;
}

// Int32Array [rows * cols]: the first clause of its Region that makes a pair visible, -1 where none does.
function visiblePairs(mask, $) {
  const out = new Int32Array($.rows * $.cols).fill(-1);
  const regions = regionsOfRows(mask, $);
  for (let i = 0; i < $.rows; i += 1) {
    if (regions[i] < 0) continue;
    const clauses = mask.regions[regions[i]].clauses;
    for (let j = 0; j < $.cols; j += 1) {
      out[i * $.cols + j] = clauses.findIndex((c) => c.literals.every((l) => l.holds($, i, j)));
    }
  }
  return out;
}

// The slots of one row (column): [{span, slot, lo, hi, why, parts}], empty ones too; `why` says what emptied one, or
// which it has taken over; `parts` are the spans that it unites.
function slotsOfLine(mask, $, axis, line) {
  const table = mask.tables[axis];
  const number = table.regions.findIndex((r) => r.lo($) <= line && line < r.hi($));
  if (number < 0) return [];
  const region = table.regions[number];
  const at = axis === "rows" ? [line, 0] : [0, line];
  const out = region.spans.map((span, slot) => {
    if (span.when && !span.when.holds($, ...at)) {
      return { region: number, slot, span, lo: 0, hi: 0, parts: [span], why: `'${span.when.text}' fails` };
    }
    const lo = span.lo($, ...at);
    return { region: number, slot, span, lo, hi: Math.max(lo, span.hi($, ...at)), parts: [span], why: "" };
  });
  for (const [a, b] of region.fuse) {
    const [x, y] = [out[a], out[b]];
    if (x.lo < x.hi && y.lo < y.hi && x.lo < y.hi && y.lo < x.hi) {
      [y.lo, y.hi] = [Math.min(x.lo, y.lo), Math.max(x.hi, y.hi)];
      [x.lo, x.hi, x.why] = [0, 0, `united with slot ${b}`];
      y.parts = region.spans.filter((span) => x.parts.includes(span) || y.parts.includes(span));
    }
  }
  for (const s of out) {
    const others = s.parts.filter((span) => span !== s.span).map((span) => region.spans.indexOf(span));
    if (others.length) s.why = s.why || `united with slot${others.length > 1 ? "s" : ""} ${others.join(" and ")}`;
    if (s.lo >= s.hi) s.parts = [s.span];
  }
  return out;
}

// By which slot each pair is visible: its number over all regions of the table, Int32Array [rows * cols], -1: none.
function slotsOfPairs(mask, $, axis) {
  const out = new Int32Array($.rows * $.cols).fill(-1);
  const [lines, others] = axis === "rows" ? [$.rows, $.cols] : [$.cols, $.rows];
  for (let line = 0; line < lines; line += 1) {
    for (const { span, lo, hi } of slotsOfLine(mask, $, axis, line)) {
      for (let other = Math.max(lo, 0); other < Math.min(hi, others); other += 1) {
        const [i, j] = axis === "rows" ? [line, other] : [other, line];
        if (out[i * $.cols + j] < 0 && (!span.residual || span.residual.holds($, i, j))) {
          out[i * $.cols + j] = span.number;
        }
      }
    }
  }
  return out;
}

// 0 (empty), 1 (partial) or 2 (full) for every tile of [height, width]: an array of rows of tiles.
function tileStates($, visible, [height, width]) {
  const out = [];
  for (let i = 0; i < $.rows; i += height) {
    const line = [];
    for (let j = 0; j < $.cols; j += width) {
      let seen = 0;
      const [down, right] = [Math.min(i + height, $.rows), Math.min(j + width, $.cols)];
      for (let y = i; y < down; y += 1) for (let x = j; x < right; x += 1) seen += visible[y * $.cols + x] >= 0;
      line.push(seen === 0 ? 0 : seen === (down - i) * width ? 2 : 1);
    }
    out.push(line);
  }
  return out;
}

// Why row i sees column j, or does not: the Region, its clauses with every literal's numbers, the slots of both lines.
function explainPair(mask, $, i, j) {
  const number = regionsOfRows(mask, $)[i];
  const region = number < 0 ? null : mask.regions[number];
  const clauses = (region ? region.clauses : []).map((clause) => {
    const literals = clause.literals.map((l) => ({
      text: l.text,
      holds: l.holds($, i, j),
      numbers: l.sides.map((side) => side($, i, j)).join(` ${l.symbol} `),
    }));
    return { name: clause.name, literals, holds: literals.every((l) => l.holds) };
  });
  const slots = {};
  for (const axis of Object.keys(mask.tables)) {
    const [line, other] = axis === "rows" ? [i, j] : [j, i];
    slots[axis] = slotsOfLine(mask, $, axis, line).map((s) => {
      const inside = s.lo <= other && other < s.hi;
      const allowed = !s.span.residual || s.span.residual.holds($, i, j);
      const why = inside && !allowed ? `'${s.span.residual.text}' fails` : s.why;
      return { ...s, holds: inside && allowed, why };
    });
  }
  const guard = region ? `${region.text} = [${region.lo($)}, ${region.hi($)})` : "";
  return { i, j, visible: clauses.some((c) => c.holds), region: region && region.name, guard, clauses, slots };
}
