// A learner's function as the checker sees it: what is wrong, on which line, and yours beside what was measured.

const looked = { gradient: 0, places: new Map() };      // at a gradient; at an entry of each

function checkerPanel(width) {
  const { verdict, headline, said, gradients } = page.checker;
  const badge = element("span", { class: `verdict ${{ PASS: "good", FAIL: "bad" }[verdict] || "warn"}` }, verdict);
  const isNote = ({ kind }) => kind === "note";
  const parts = [element("h3", { class: "headline" }, badge, " ", headline), ...sentencesOf(said.filter((one) => !isNote(one)))];
  if (page.alternatives.length) {
    const on = state.alternative !== null;
    parts.push(element("p", {}, element("button", { type: "button", class: on ? "chosen" : "", "aria-pressed": String(on), onclick: () => chooseAlternative(on ? null : 0) }, "Put right: what changes?")));
  }
  if (gradients.length) parts.push(...gradientMaps(width));
  return [...parts, ...sentencesOf(said.filter(isNote))];
}

/* The checker's sentences; a place leads to its line. */
function sentencesOf(said) {
  return said.map(({ kind, text, html, file, line }) => {
    if (html !== undefined) {
      const code = element("code", { class: { now: "bad", wrong: "bad", right: "good" }[kind] || null });
      code.innerHTML = html;
      if (kind !== "place") return element("p", { class: "code-said" }, element("span", { class: "soft" }, kind), code);
      return element("p", { class: "code-said" }, element("button", { type: "button", onclick: () => goToSource(file, line) }, `line ${line}`), code);
    }
    return element("p", { class: { finding: "bad", refusal: "warn", note: "soft", tried: "soft" }[kind] || null }, kind === "note" ? `Note: ${text}` : text);
  });
}

// Lines ----------------------------------------------------------------------------------------------------------------

/* The words of the checker for each line of a sheet that it names: {number: words}. */
function marksOf(sheet) {
  const marks = page.checker ? page.checker.marks.filter((mark) => mark.file === sheet.file) : [];
  return new Map(marks.map(({ line, words }) => [line, words]));
}

/* The last time that a line of a file ran, or, if it makes nothing, as a blank does, the nearest one above it; or null. */
function stepAt(file, number) {
  const rec = recording(), found = { step: null, first: 0 };
  rec.lines.forEach((line, step) => {
    const sheet = page.sheets[rec.frames[line.frame].sheet], inside = sheet.first <= number && number < sheet.first + sheet.lines.length;
    if (sheet.file === file && inside && line.first <= number && line.first >= found.first) Object.assign(found, { step, first: line.first });
  });
  return found.step;
}

function goToSource(file, number) {
  const step = stepAt(file, number);
  if (step !== null) goTo(step);
}

/* The first line that the checker names and that ran, or null: there the page begins. */
function firstMarkedStep() {
  const steps = page.checker ? page.checker.marks.map(({ file, line }) => stepAt(file, line)) : [];
  return steps.find((step) => step !== null) ?? null;
}

// Yours, measured, difference ------------------------------------------------------------------------------------------

function gradientMaps(width) {
  const { gradients } = page.checker, gradient = gradients[looked.gradient];
  const choices = gradients.map((one, i) => element("button", { type: "button", class: i === looked.gradient ? "chosen" : "", "aria-pressed": String(i === looked.gradient),
    onclick: () => { looked.gradient = i; redraw(document.getElementById("wrong"), showWrong); } }, element("code", {}, one.name), " ", element("span", { class: { wrong: "bad", right: "good" }[one.state] || "warn" }, { wrong: "✗", right: "✓" }[one.state] || "?")));
  const parts = gradients.length > 1 ? [element("p", { class: "choices", role: "group", "aria-label": "the gradient that is shown" }, ...choices)] : [element("h4", {}, element("code", {}, gradient.name))];
  parts.push(...gradient.words.map((words) => element("p", {}, words.replace(/ -(?=\d)/g, " −"))));
  const maps = [["yours", gradient.yours], ["measured", gradient.measured], ["difference", gradient.difference]].filter(([, ref]) => typeof ref === "number");
  if (!maps.length) return parts;
  return [...parts, ...comparedMaps(gradient, maps, width)];
}

function comparedMaps(gradient, maps, width) {
  const arrays = maps.map(([, ref]) => arrayOf(ref)), most = Math.max(...arrays.slice(0, 2).map((array) => array.most));
  const shape = (array) => array.shape.join(" ");
  const together = arrays.every((array) => shape(array) === shape(arrays[0])), layout = layoutOf(arrays[arrays.length - 1]);
  const place = looked.places.get(gradient) || worstPlace(arrays[arrays.length - 1], gradient);
  const said = element("p", { class: "entry at-entry", "aria-live": "polite" }), sideBySide = width / maps.length >= 30 + 11 * layout.columns;
  const tile = tileOf(arrays[arrays.length - 1], layout, place), drawn = [];
  const look = (where) => {
    looked.places.set(gradient, where);
    if (together) drawn.forEach((map) => map.mark(where));
    said.replaceChildren(...entrySaid(gradient, where));
  };
  const figures = maps.map(([title], k) => {
    const array = arrays[k], alone = !together && k === 0;
    const map = heatMap(array, { tile: alone ? 0 : tile, chosen: alone ? null : place, choose: alone ? () => {} : look, point: alone ? null : look, open: () => openEntry(gradient, looked.places.get(gradient)), hatched: (where) => title !== "yours" && !hasSlope(gradient, where), most, caption: `${gradient.name}, ${title}`, width: sideBySide ? width / maps.length - 8 : width, tallest: sideBySide ? 420 : 150 });
    if (!alone) drawn.push(map);
    return element("figure", {}, element("figcaption", {}, title === "measured" && gradient.yours === null ? "measured: what it has to be" : title), map.figure);
  });
  look(place);
  const tiles = layout.count > 1 ? [tileButtons(gradient, arrays[arrays.length - 1], layout, tile)] : [];
  return [...tiles, element("div", { class: "compared" }, ...figures), element("p", { class: "soft" }, scaleOf(most), ...legendOf(gradient)), said];
}

/* The checker's worst entry; if it is not on the page, the one that is off by most; the first where nothing is compared. */
function worstPlace(array, gradient) {
  const known = gradient.worst && gradient.worst.length === array.shape.length ? placesOf(array, gradient.worst) : null;
  if (known) return known;
  let worst = 0;
  if (gradient.difference !== null) array.values.forEach((value, i) => { if (Math.abs(value) > Math.abs(array.values[worst]) || Number.isNaN(array.values[worst])) worst = i; });
  return unflatten(worst, array.part);
}

function tileOf(array, layout, place) {
  return flatten(layout.tiles.map((axis) => place[axis]), layout.tiles.map((axis) => array.part[axis]));
}

function tileButtons(gradient, array, layout, tile) {
  const go = (k) => () => { looked.places.set(gradient, placeOf(array, layout, k, 0, 0)); redraw(document.getElementById("wrong"), showWrong); };
  return element("p", { class: "tiles" }, ...[...Array(Math.min(layout.count, 24)).keys()].map((k) => element("button", { type: "button", class: k === tile ? "chosen" : "", onclick: go(k) }, `[${unflatten(k, layout.tiles.map((axis) => array.part[axis])).join(", ")}]`)));
}

function hasSlope(gradient, place) {
  const array = arrayOf(gradient.measured);
  return !array || !Number.isNaN(array.values[flatten(place, array.part)]);
}

function legendOf(gradient) {
  const array = arrayOf(gradient.measured), without = array ? Array.from(array.values).filter(Number.isNaN).length : 0;
  if (!without) return [];
  const kinks = gradient.kinks.length;
  return [element("br"), element("i", { class: "hatched" }), kinks ? ` ${kinks === 1 ? "1 entry has" : `${kinks} entries have`} no slope: a kink, as of ReLU at 0, is too near.` : ` ${without.toLocaleString("en")} entries were not measured.`];
}

/* "dx[1, 2]: yours 0.132, measured 0.264, off by −0.132 (half)" */
function entrySaid(gradient, place) {
  const at = (ref) => { const array = arrayOf(ref); return array ? array.values[flatten(place, array.part)] : undefined; };
  const array = arrayOf(gradient.measured) || arrayOf(gradient.yours), index = wholeIndex(array, place);
  const yours = at(gradient.yours), measured = at(gradient.measured), off = at(gradient.difference), parts = [element("b", {}, element("code", {}, `${gradient.name}[${index.join(", ")}]`)), ": "];
  if (gradient.difference !== null || gradient.measured === null) parts.push("yours ", element("b", {}, written(yours, 6)), ", ");
  if (gradient.measured === null) return [...parts, "and nothing was measured."];
  if (Number.isNaN(measured)) return [...parts, gradient.kinks.includes(flatten(index, array.shape)) ? "a kink is too near: there is no slope here, and nothing to compare with." : "and no slope was measured here."];
  parts.push("measured ", element("b", {}, written(measured, 6)));
  if (gradient.difference === null) return parts;
  if (off === 0) return [...parts, ", ", element("span", { class: "good" }, "✓ the same but for rounding")];
  return [...parts, ", ", element("span", { class: "bad" }, `✗ off by ${off > 0 ? "+" : ""}${written(off, 3)}${shareOf(yours, measured)}`)];
}

/* " (half)": what yours is of the measured one */
function shareOf(yours, measured) {
  const share = yours / measured, near = (value) => Math.abs(share / value - 1) < 0.005;
  if (!Number.isFinite(share)) return "";
  if (share === 0) return " (it is 0)";
  for (const [value, words] of [[-1, "the other sign"], [0.5, "half"], [2, "twice"], [1 / 3, "a third"], [3, "three times"]]) if (near(value)) return ` (${words})`;
  if (Math.abs(share) >= 10) return ` (${written(Math.abs(share), 2)} times as large${share < 0 ? ", with the other sign" : ""})`;
  return ` (${written(100 * Math.abs(share - 1), 2)} %${share < 0 ? ", with the other sign" : ""})`;
}

/* The entry of yours in the array's own view, with what it is made of. */
function openEntry(gradient, place) {
  const rec = recording(), step = rec.lines.findLastIndex((line) => line.made.some(([, ref]) => ref === gradient.yours));
  if (step < 0) return;
  goTo(step);
  const made = madeBy(rec.lines[step]).find((one) => one.ref === gradient.yours);
  pin({ ...made, frame: rec.frames[rec.lines[step].frame], line: rec.lines[step] });
  state.entry = wholeIndex(arrayOf(gradient.yours), place);
  showArray();
}
