// The sheet: a function's source with what each line has made so far.

const shownSheet = { frame: null, rows: new Map() };

function currentLine() {
  return recording().lines[state.step];
}

function currentFrame() {
  return recording().frames[currentLine().frame];
}

/* What a call is called: "layer_norm", "Linear", or for a function inside another "backward of Linear". */
function titleOf(frame) {
  const sheet = page.sheets[frame.sheet], top = outermost(frame);
  return top === frame ? sheet.title : `${frame.name === "<lambda>" ? "backward" : frame.name} of ${sheet.title}`;
}

function showCode() {
  const frame = currentFrame(), top = outermost(frame);
  if (shownSheet.frame !== top) buildSheet(top);
  showStack(frame);
  updateLines();
}

function showStack(frame) {
  const chain = [];
  for (let one = frame; one; one = one.parent === null ? null : recording().frames[one.parent]) chain.unshift(one);
  const visible = chain.filter((one, i) => i === chain.length - 1 || titleOf(one) !== titleOf(chain[i + 1]));
  const stack = document.getElementById("stack");
  stack.replaceChildren(
    element("span", { class: frame.back ? "phase backward" : "phase" }, frame.back ? "backward" : "forward"),
    ...visible.map((one) =>
      element("button", { type: "button", class: one === frame ? "crumb here" : "crumb", title: one.at || null,
        onclick: () => goTo((one.lines[0] || recording().lines[firstInside(one)]).number) }, page.sheets[one.sheet].title)),
  );
}

/* The number of the first line that a call, or a call inside it, has; of those that count. */
function firstInside(frame, counts = () => true) {
  const own = frame.lines.filter(counts).map((line) => line.number);
  return Math.min(Infinity, ...own, ...frame.inside.filter((one) => one.shown).map((one) => firstInside(one, counts)));
}

function makesArray(line) {
  return line.made.some(([, ref]) => typeof ref === "number");
}

function lastInside(frame) {
  const numbers = [frame.lines.length ? frame.lines[frame.lines.length - 1].number : -1, ...frame.inside.filter((one) => one.shown).map(lastInside)];
  return Math.max(...numbers);
}

function buildSheet(frame) {
  const sheet = page.sheets[frame.sheet];
  shownSheet.frame = frame;
  shownSheet.rows.clear();
  document.getElementById("sheet-title").textContent = sheet.title;
  document.getElementById("sheet-place").textContent = `${sheet.file}, from line ${sheet.first}${frame.at ? ` · here: ${frame.at}` : ""}`;
  buildFormula(sheet);
  const lines = document.getElementById("lines"), marks = marksOf(sheet);
  lines.replaceChildren();
  sheet.lines.forEach((html, i) => {
    const number = sheet.first + i, source = element("code", { class: "source" });
    source.innerHTML = shortened(html) || " ";
    const made = element("span", { class: "made" });
    const row = element("div", { class: marks.has(number) ? "line suspect" : "line", role: "row", "data-line": number },
      element("span", { class: "number", "aria-hidden": "true" }, number), element("span", { class: "text" }, source), made);
    if (marks.has(number)) row.append(element("span", { class: "suspicion" }, marks.get(number)));
    lines.append(row);
    shownSheet.rows.set(number, { row, made, source, html: shortened(html) });
  });
  foldLines(sheet, frame.sheet);
  for (const number of marks.keys()) shownSheet.rows.get(number)?.open?.();         // what the checker names is in sight
}

/* A line without the blanks that bring its comment into a column. */
function shortened(html) {
  return html.replace(/(<span class="w">)? {3,}(<\/span>)?(?=<span class="c1">)/, (blanks, open, close, at) => (textOf(html.slice(0, at)).trim() ? "  " : blanks));
}

/* For each line of the sheet: the last time that it ran in this call, up to the current step. */
function latestLines(frame) {
  const latest = new Map();
  for (const one of family(frame)) {
    for (const line of one.lines) {
      if (line.number > state.step) break;
      const before = latest.get(line.first);
      if (!before || before.number < line.number) latest.set(line.first, line);
    }
  }
  return latest;
}

function updateLines() {
  const frame = shownSheet.frame, latest = latestLines(frame), now = currentLine(), wrong = other();
  const edited = wrong && page.sheets[frame.sheet].file === wrong.file ? wrong.line : null;
  const started = family(frame).filter((one) => one.lines.length && one.lines[0].number <= state.step);
  const replaced = page.kind === "model" ? edited : null;            // a learner's line stays as it is
  for (const [number, { row, made, source, html }] of shownSheet.rows) {
    const line = latest.get(number);
    row.classList.toggle("now", line === now);
    row.classList.toggle("part-of-now", number > now.first && number <= now.last && line === undefined && recording().frames[now.frame] && outermost(recording().frames[now.frame]) === frame);
    row.classList.toggle("ran", line !== undefined);
    row.classList.toggle("failed", Boolean(line && line.error));
    row.classList.toggle("edited", number === edited);
    const chips = line ? madeBy(line).map((one) => chip(one, line)) : [];
    if (line && line.error) chips.push(element("span", { class: "bad" }, line.error));
    if (line && wrong && wrong.lines[line.number] === null) chips.push(element("span", { class: "bad" }, page.kind === "model" ? "does not run with this backward" : "does not run when put right"));
    const starting = started.find((one) => isDefinition(one, number));
    if (starting) chips.unshift(...argumentsOf(starting).filter((one) => typeof one.ref === "number").map((one) => chip(one, null, starting)));
    made.replaceChildren(...chips);
    if (number === edited || source.dataset.edited) {
      source.dataset.edited = number === edited ? "yes" : "";
      source.innerHTML = number === edited ? `<span class="edit">${number === replaced ? wrong.edited : html}</span>` : html || " ";
    }
  }
  const row = shownSheet.rows.get(now.first);
  showFolded(row);
  markFormulas(now);
  if (row) row.row.scrollIntoView({ block: "nearest" });
}

/* True if the line is the one on which this call's function is defined. */
function isDefinition(frame, number) {
  if (frame === shownSheet.frame) {
    return number === firstDef(page.sheets[frame.sheet]);
  }
  const maker = recording().frames[frame.maker];
  const defined = maker.lines.find((line) => line.made.some(([name, ref]) => name === frame.name && ref && ref.text !== undefined && ref.text.startsWith("keeps")));
  return Boolean(defined) && defined.first === number;
}

function firstDef(sheet) {
  return sheet.first + sheet.lines.findIndex((html) => /^\s*def /.test(textOf(html)));
}

function textOf(html) {
  return html.replace(/<[^>]*>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&").replace(/&quot;/g, '"').replace(/&#39;/g, "'");
}

/* A button with an array's name, picture, shape and range; text for anything else. */
function chip(made, line, frame = recording().frames[line ? line.frame : 0]) {
  const array = arrayOf(made.ref);
  if (!array) return element("span", { class: "value", "data-name": made.name }, `${made.name}: ${made.ref ? made.ref.text : ""}`);
  const range = array.low === null ? "" : `${written(array.low, 3)} … ${written(array.high, 3)}`;
  const button = element("button", { type: "button", class: "chip", "data-name": made.name, title: `${made.name} (${array.shape.join(", ")}): ${range}` },
    element("b", {}, made.name), thumbnail(array), element("span", { class: "shape" }, `(${array.shape.join(", ")})`), element("span", { class: "range" }, range));
  if (array.bad) button.append(element("span", { class: "bad" }, `${array.bad} not finite`));
  if (made.right !== null && made.right !== undefined) {
    button.classList.add("differs");
    button.append(element("span", { class: "bad" }, differenceText(made.ref, made.right)));
  }
  button.addEventListener("click", () => pin({ ...made, frame, line }));
  return button;
}

/* "≠ by 35 %": ‖other − right‖/‖right‖ */
function differenceText(ref, right) {
  const share = differenceShare(ref, right);
  return share === null ? "≠" : share === Infinity ? "≠ where 0 is right" : `≠ by ${share >= 10 ? `${written(share, 2)} times` : `${written(100 * share, 2)} %`}`;
}

const shares = new Map();

function differenceShare(ref, right) {
  const key = `${ref} ${right}`;
  if (!shares.has(key)) {
    const a = arrayOf(ref), b = arrayOf(right);
    if (!a || !b || a.values.length !== b.values.length) return null;
    let off = 0, size = 0;
    for (let i = 0; i < b.values.length; i++) {
      off += (a.values[i] - b.values[i]) ** 2;
      size += b.values[i] ** 2;
    }
    shares.set(key, size > 0 ? Math.sqrt(off / size) : off > 0 ? Infinity : 0);
  }
  return shares.get(key);
}

// Pointing at names ----------------------------------------------------------------------------------------------------

/* The call of the sheet's family in which the line at this row runs. */
function frameAt(number) {
  const line = latestLines(shownSheet.frame).get(number);
  if (line) return recording().frames[line.frame];
  const now = currentFrame();
  return family(shownSheet.frame).includes(now) ? now : shownSheet.frame;
}

/* The name that a piece of the source stands for: "self.dW" with its dot; null for x.sum and for axis in f(axis=1). */
function nameOf(span) {
  if (span.dataset.name) return span.dataset.name;
  const before = span.previousSibling ? span.previousSibling.textContent : "", after = span.nextSibling ? span.nextSibling.textContent : "";
  if (/^=(?!=)/.test(after)) return null;
  if (!before.endsWith(".")) return span.textContent;
  const owner = before === "." ? span.previousSibling.previousSibling : null;
  return owner && owner.matches && owner.matches(".n, .bp") ? `${owner.textContent}.${span.textContent}` : null;
}

function light(name) {
  for (const span of document.querySelectorAll("#lines .n, #lines .made [data-name], #formula [data-name]")) {
    span.classList.toggle("lit", name !== null && nameOf(span) === name);
  }
}

function watchNames() {
  const lines = document.getElementById("lines");
  const nameAt = (event) => {
    const span = event.target.closest(".source .n, .made [data-name]");
    return span && lines.contains(span) ? span : null;
  };
  lines.addEventListener("mouseover", (event) => {
    const span = nameAt(event);
    if (!span) return;
    const name = nameOf(span);
    if (name === null) return;
    light(name);
    const found = lookUp(name, frameAt(Number(span.closest(".line").dataset.line)));
    if (found && typeof found.ref === "number") point(found);
  });
  lines.addEventListener("focusin", (event) => light(event.target.dataset.name || null));
  lines.addEventListener("focusout", () => light(null));
  lines.addEventListener("mouseout", (event) => {
    if (!nameAt(event)) return;
    light(null);
    point(null);
  });
  lines.addEventListener("click", (event) => {
    const span = event.target.closest(".source .n");
    if (!span || String(getSelection())) return;
    const name = nameOf(span), found = name && lookUp(name, frameAt(Number(span.closest(".line").dataset.line)));
    if (found && typeof found.ref === "number") pin(found);
  });
}
