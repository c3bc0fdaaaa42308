// The array: its heat map, and the entry that was clicked: value, terms, measured slope.

function pin(made) {
  state.pinned = made;
  state.pointed = null;
  state.entry = null;
  showTab("array");
}

function point(made) {
  state.pointed = made;
  if (currentTab() === "array") showArray();
}

function showArray() {
  const made = state.pointed || state.pinned, panel = document.getElementById("array");
  if (!made || typeof made.ref !== "number") {
    panel.replaceChildren(element("p", { class: "soft" }, state.empty ? `This line makes no array. ${state.empty}` : ""), element("p", { class: "soft" }, "Point at a name in the code, or click an array beside it."));
    return;
  }
  const array = arrayOf(made.ref), layout = layoutOf(array), entry = state.pointed ? null : state.entry;
  const about = element("p", { class: "about-array" }, `(${array.shape.join(", ")}) ${array.dtype}`);
  if (made.line) about.append(` · made at line ${made.line.first} of ${titleOf(made.frame)}`);
  else about.append(` · given to ${titleOf(made.frame)}`);
  const parts = [element("h3", {}, made.name), about, element("p", { class: "soft" }, ...statisticsOf(array))];
  const cut = partsShown(array);
  if (cut.length) parts.push(element("p", { class: "note" }, `Shown in part: ${cut.join(", ")}. The sizes above are of the whole array.`));
  const tile = Math.min(state.head, layout.count - 1);
  if (layout.count > 1) parts.push(tileChoice(array, layout, tile));
  const choose = (place) => {
    if (state.pointed) pin(state.pointed);
    state.entry = wholeIndex(array, place);
    showArray();
    const canvas = panel.querySelector("canvas.map");
    if (canvas) canvas.focus({ preventScroll: true });
    panel.querySelector(".entry").scrollIntoView({ block: "nearest" });
  };
  const chosen = entry ? placesOf(array, entry) : null;
  const width = Math.max(240, panel.clientWidth - 24 || 330);
  if (array.values.length) {
    const isOther = typeof made.right === "number";
    if (isOther) parts.push(element("h4", { class: "bad" }, page.kind === "model" ? "with the wrong backward" : "yours"));
    parts.push(heatMap(array, { tile, chosen, choose, caption: made.name, width }).figure);
    if (isOther) parts.push(element("h4", { class: "good" }, page.kind === "model" ? "right" : "put right"), heatMap(arrayOf(made.right), { tile, chosen, choose, caption: `${made.name}, right`, width, most: array.most || undefined }).figure);
    if (array.form[0] === "f") parts.push(scaleOf(array.most));
  }
  if (entry) parts.push(entryPanel(made, array, entry));
  else if (array.values.length) parts.push(element("p", { class: "soft" }, "Click an entry, or move to it with the arrow keys: what is it made of?"));
  panel.replaceChildren(...parts);
}

/* ["48 of 12,000 along axis 0"], of the axes that are shown in part */
function partsShown(array) {
  return array.shape.map((size, axis) => (array.shown[axis] ? `${array.part[axis]} of ${size.toLocaleString("en")} along axis ${axis}${array.kinds[axis] === "vocabulary" ? " (words of the text, and likely ones)" : ""}` : null)).filter(Boolean);
}

function placesOf(array, index) {
  const place = index.map((i, axis) => (array.shown[axis] ? array.shown[axis].indexOf(i) : i));
  return place.includes(-1) ? null : place;
}

function statisticsOf(array) {
  if (array.low === null) return [array.dtype === "bool" ? `${array.zeros} of its entries are False` : "no finite entry"];
  const size = sizeOf(array);
  const norm = array.dtype.startsWith("float") ? `, size ‖·‖ ${written(array.norm, 4)}` : "";       // word ids have none
  const said = [`from ${written(array.low, 4)} to ${written(array.high, 4)}${norm}`];
  if (array.zeros) said.push(`, ${array.zeros === size ? "all" : array.zeros.toLocaleString("en")} of ${size.toLocaleString("en")} entries are 0`);
  if (array.bad) said.push(element("b", { class: "bad" }, `, ${array.bad} are NaN or infinite`));
  return said;
}

function tileChoice(array, layout, tile) {
  const kind = layout.tiles.length === 1 ? array.kinds[layout.tiles[0]] : "";
  return element("p", { class: "tiles" }, ...[...Array(Math.min(layout.count, 24)).keys()].map((k) =>
    element("button", { type: "button", class: k === tile ? "chosen" : "", onclick: () => { state.head = k; state.entry = null; showArray(); } }, kind ? labelOf(kind, k) : `part ${k}`)));
}

// The entry ------------------------------------------------------------------------------------------------------------

const DIGITS = { f8: 9, f4: 7, f2: 3, i4: 12 };

function entryPanel(made, array, index) {
  const value = valueAt(array, index);
  const panel = element("div", { class: "entry", "aria-live": "polite" }, element("h4", {}, `${made.name} at ${describedIndex(array, index)}`),
    element("p", { class: "value" }, array.form === "u1" ? (value ? "True" : "False") : written(value, DIGITS[array.form])));
  const word = array.form === "i4" && page.labels.vocabulary && page.labels.vocabulary[value];
  if (word) panel.append(element("p", {}, `the word “${word}”`));
  if (typeof made.right === "number") panel.append(element("p", {}, "right: ", element("b", {}, written(valueAt(arrayOf(made.right), index), DIGITS[arrayOf(made.right).form]))));
  panel.append(...measuredOf(made, typeof made.right === "number" && page.kind === "model" ? arrayOf(made.right) : array, index));
  const parts = made.parts || partsElsewhere(made);
  if (parts) {
    const terms = termsPanel(parts, index, 0);
    if (terms) panel.append(terms);
  } else if (typeof made.right === "number") {
    panel.append(element("p", { class: "soft" }, "Its terms are shown for the right backward: choose “none” as the planted bug."));
  } else if (made.line && madeInside(made)) {
    panel.append(element("p", { class: "soft" }, "It comes from a call: ", element("button", { type: "button", onclick: () => goTo(lastInside(madeInside(made))) }, `go to ${titleOf(madeInside(made))}`)));
  }
  return panel;
}

/* The parts of the same array on another line: of what is returned, on the line where it was made. */
function partsElsewhere(made) {
  if (typeof made.ref !== "number" || !made.frame) return null;
  for (const line of [...made.frame.lines].reverse()) {
    const same = line.made.find(([, ref, parts]) => ref === made.ref && parts);
    if (same) return same[2];
  }
  return null;
}

/* The call inside a line that gave its array. */
function madeInside(made) {
  return made.frame.inside.filter((one) => one.shown && one.line >= made.line.first && one.line <= made.line.last && lastInside(one) < made.line.number).pop();
}

function measuredOf(made, array, index) {
  const flat = flatten(index, array.shape), found = [];
  const of = made.name.startsWith("d") && made.name.length > 1 ? made.name.slice(1) : "what it is the gradient of";
  for (const [which, says] of [["op", `measured, by moving this entry of ${of}`], ["loss", "measured, of the whole loss"]]) {
    const slopes = slopesOf(made, array, which);
    if (!slopes) continue;
    const measured = slopes.map.get(flat);
    if (!measured) {
      const why = slopes.atKinks.has(flat) ? "a kink of a ReLU is too near: there is no slope here" : `not measured at this entry (${slopes.map.size.toLocaleString("en")} of ${sizeOf(array).toLocaleString("en")} were)`;
      if (which === "op") found.push(element("p", { class: "soft" }, why));
      continue;
    }
    const [slope, uncertainty] = measured, wrong = typeof made.right === "number" && page.kind === "model";
    const verdict = wrong ? verdictOf(valueAt(arrayOf(made.ref), index), slope, uncertainty, arrayOf(made.ref), "the wrong backward") : verdictOf(valueAt(array, index), slope, uncertainty, array, "the backward");
    found.push(element("p", { class: "measured" }, `${says}: `, element("b", {}, `${written(slope, 9)} ± ${written(uncertainty, 1)}`), " ", verdict));
  }
  return found;
}

const ROUNDING = { f8: 1e-9, f4: 5e-5, f2: 1e-3 };      // relative to the largest entry, as in arrays.py

function verdictOf(yours, slope, uncertainty, array, who) {
  const off = Math.abs(slope - yours), agrees = off <= uncertainty + ROUNDING[array.form] * array.most;
  return element("span", { class: agrees ? "good" : "bad" }, agrees ? `✓ ${who} agrees` : `✗ ${who} is off by ${written(off, 3)}`);
}

const MOST_TERMS = 6;

function termsPanel(part, index, depth) {
  const terms = termsOf(part, index);
  if (!terms) return null;
  const { rows } = terms, panel = element("div", { class: "terms" });
  panel.append(element("p", {}, element("span", { class: "soft" }, depth === 0 ? `= ${terms.says}` : terms.says)));
  const largest = Math.max(...rows.map((row) => Math.abs(row.value) || 0), 1e-300), list = element("ul", {});
  rows.slice(0, MOST_TERMS).forEach((row) => list.append(termRow(row, largest, depth)));
  panel.append(list);
  if (rows.length > MOST_TERMS || (terms.count && terms.count > rows.length)) {
    const rest = rows.slice(MOST_TERMS).reduce((sum, row) => sum + row.value, 0), more = (terms.count || rows.length) - MOST_TERMS;
    const hidden = terms.count && terms.count > rows.length ? `, of which ${terms.count - rows.length} are not on this page` : "";
    panel.append(element("p", { class: "soft" }, `and ${more} more${hidden}, adding up to ${written(rest, 4)}`));
  }
  return panel;
}

function termRow(row, largest, depth) {
  const item = element("li", {}), width = row.value === undefined ? 0 : Math.min(1, Math.abs(row.value) / largest);
  const strip = element("i", { class: row.value < 0 ? "below" : "above" });
  strip.style.width = `${Math.round(56 * width)}px`;
  const deeper = row.part && row.part.op && depth < 4;
  const label = deeper
    ? element("button", { type: "button", class: "deeper", "aria-expanded": "false", onclick: (event) => {
        const open = item.querySelector(":scope > .terms");
        event.currentTarget.setAttribute("aria-expanded", String(!open));
        if (open) open.remove();
        else { const inside = termsPanel(row.part, row.index, depth + 1); if (inside) item.append(inside); }
      } }, row.label)
    : element("code", {}, row.label);
  item.append(element("span", { class: row.label.length > 14 ? "term long" : "term" }, label, row.text ? element("span", { class: "soft" }, row.text) : "", element("b", {}, written(row.value, 5)), element("span", { class: "strip" }, strip)));
  return item;
}
