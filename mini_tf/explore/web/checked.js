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

/* The checker's sentences; a place leads to its line, and what differs between a line and its correction is marked. */
function sentencesOf(said) {
  const before = [];
  return said.map(({ kind, text, html, file, line }) => {
    if (html !== undefined) {
      const code = element("code", { class: { now: "bad", wrong: "bad", right: "good" }[kind] || null });
      code.innerHTML = html;
      if (kind === "now" || kind === "wrong") before.push(code);
      if (kind === "right" && before.length) markDifference(before.pop(), code);
      if (kind !== "place") return element("p", { class: "code-said" }, element("span", { class: "soft" }, kind), code);
      return element("p", { class: "code-said" }, element("button", { type: "button", onclick: () => goToSource(file, line) }, `line ${line}`), code);
    }
    return element("p", { class: { finding: "bad", refusal: "warn", note: "soft", tried: "soft" }[kind] || null }, kind === "note" ? `Note: ${text}` : text);
  });
}

/* Mark the words in which two lines differ. */
function markDifference(one, other) {
  const a = one.textContent, b = other.textContent, shorter = Math.min(a.length, b.length);
  let start = 0, end = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  while (end < shorter - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  while (start > 0 && /\w/.test(a[start - 1]) && (/\w/.test(a[start]) || /\w/.test(b[start]))) start -= 1;
  while (end > 0 && /\w/.test(a[a.length - end]) && (/\w/.test(a[a.length - 1 - end]) || /\w/.test(b[b.length - 1 - end]))) end -= 1;
  for (const code of [one, other]) markPart(code, start, code.textContent.length - end);
}

function markPart(code, start, end) {
  const range = document.createRange(), walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  let at = 0;
  for (let node = walker.nextNode(); node; at += node.length, node = walker.nextNode()) {
    if (at <= start && start <= at + node.length) range.setStart(node, start - at);
    if (at <= end && end <= at + node.length) { range.setEnd(node, end - at); break; }
  }
  const mark = element("mark", {}, range.extractContents());
  if (mark.textContent) range.insertNode(mark);
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
  if (step !== null) openLines(step);
}

/* The first line that the checker names and that ran, or null: there the page begins. */
function firstMarkedStep() {
  const steps = page.checker ? page.checker.marks.map(({ file, line }) => stepAt(file, line)) : [];
  return steps.find((step) => step !== null) ?? null;
}

// Yours, measured, difference ------------------------------------------------------------------------------------------

const MARKS = { wrong: ["bad", "✗"], right: ["good", "✓"], "not tested": ["warn", "?"] };

/* Which gradient, what is said of it, and its maps. */
function gradientMaps(width) {
  const { gradients } = page.checker, gradient = gradients[looked.gradient], name = (one) => element("code", {}, one.name);
  const choice = (one, i) => {
    const [tone, mark] = MARKS[one.state], on = one === gradient;
    return element("button", { type: "button", class: on ? "chosen" : "", "aria-pressed": String(on), onclick: () => lookAt(i) }, name(one), " ",
      element("span", { class: tone, "aria-label": one.state }, mark));
  };
  const head = gradients.length > 1
    ? element("p", { class: "choices", role: "group", "aria-label": "the gradient that is shown" }, ...gradients.map(choice))
    : element("h4", {}, name(gradient));
  const words = gradient.words.map((one) => element("p", {}, one.replace(/ -(?=\d)/g, " −")));
  const maps = ["yours", "measured", "difference"].filter((which) => gradient[which] !== null);
  return [head, ...words, ...(maps.length ? comparedMaps(gradient, maps, width) : [])];
}

function lookAt(number) {
  looked.gradient = number;
  redraw(document.getElementById("wrong"), showWrong);
}

/* The maps side by side if there is room, else below each other; an entry is marked in all of them at once. */
function comparedMaps(gradient, maps, width) {
  const arrays = maps.map((which) => arrayOf(gradient[which])), last = arrays[arrays.length - 1], layout = layoutOf(last);
  const most = Math.max(...arrays.slice(0, 2).map((array) => array.most)), sideBySide = width / maps.length >= 30 + 11 * layout.columns;
  const sizes = sideBySide ? { width: width / maps.length - 8, tallest: 420 } : { width, tallest: 150 };
  const place = looked.places.get(gradient) || worstPlace(last, gradient), tile = tileOf(last, layout, place);
  const said = element("p", { class: "entry at-entry", "aria-live": "polite" }), drawn = [];
  const look = (where) => {
    looked.places.set(gradient, where);
    drawn.forEach((map) => map.mark(where));
    said.replaceChildren(...entrySaid(gradient, where));
  };
  const figures = maps.map((which, k) => {
    const options = { most, caption: `${gradient.name}, ${which}`, ...sizes };
    const same = arrays[k].shape.join() === last.shape.join();           // yours may have a wrong shape
    if (same) Object.assign(options, { tile, chosen: place, choose: look, point: look, open: () => openEntry(gradient, looked.places.get(gradient)) });
    if (which !== "yours") options.hatched = (where) => !hasSlope(gradient, where);
    const map = heatMap(arrays[k], options);
    if (same) drawn.push(map);
    return element("figure", {}, element("figcaption", {}, which === "measured" && gradient.yours === null ? "measured: what it has to be" : which), map.figure);
  });
  look(place);
  const tiles = layout.count > 1 ? [tileButtons(gradient, last, layout, tile)] : [], cut = partsShown(last);
  const part = cut.length ? [element("p", { class: "soft" }, `Shown in part: ${cut.join(", ")}.`)] : [];
  return [...tiles, element("div", { class: "compared" }, ...figures), element("p", { class: "soft" }, scaleOf(most), ...legendOf(gradient)), ...part, said];
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
  const rounded = (value) => (value < 1 ? written(value, 1) : Math.round(value).toLocaleString("en")), sign = share < 0 ? ", with the other sign" : "";
  return Math.abs(share) >= 10 ? ` (${rounded(Math.abs(share))} times as large${sign})` : ` (${rounded(100 * Math.abs(share - 1))} %${sign})`;
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
