// The page's data: arrays, decoded when they are first needed, and what each name stood for at each line.

const page = JSON.parse(document.getElementById("data").textContent);
const state = { moment: page.recordings.length - 1, step: 0, alternative: null, pinned: null, pointed: null, entry: null, head: 0 };

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/* Draw a part of the page anew; the keys stay with the button that had them, if there is one with the same words. */
function redraw(container, draw) {
  const words = container.contains(document.activeElement) ? document.activeElement.textContent : null;
  draw();
  if (words === null || container.contains(document.activeElement)) return;
  const same = Array.from(container.querySelectorAll("button")).find((button) => button.textContent === words);
  if (same) same.focus({ preventScroll: true });
}

// Arrays ---------------------------------------------------------------------------------------------------------------

function bytesOf(text) {                                // or the number of one that the page has once
  return Uint8Array.from(atob(typeof text === "number" ? page.bytes[text] : text), (letter) => letter.charCodeAt(0)).buffer;
}

const FORMS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };

function halves(buffer, scale) {                       // float16 times a scale
  return Float64Array.from(new Uint16Array(buffer), (h) => {
    const sign = h >> 15 ? -1 : 1, exponent = (h >> 10) & 31, fraction = h & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return scale * sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
  });
}

const decoded = new Map();

/* An array of the page: shape, part (the shape of what is shown), values, and `shown`, the indices along each axis. */
function arrayOf(ref) {
  if (typeof ref !== "number") return null;
  if (!decoded.has(ref)) {
    const about = page.arrays[ref], buffer = bytesOf(about.data);
    const values = about.form === "f2" ? halves(buffer, about.scale) : new FORMS[about.form](buffer);
    const shown = about.shape.map((size, axis) => (about.shown && about.shown[axis]) || null);
    const part = about.shape.map((size, axis) => (shown[axis] ? shown[axis].length : size));
    let most = 0;
    for (const value of values) if (Math.abs(value) > most && Number.isFinite(value)) most = Math.abs(value);
    decoded.set(ref, { ref, ...about, values, shown, part, most });
  }
  return decoded.get(ref);
}

function flatten(index, shape) {
  return index.reduce((flat, i, axis) => flat * shape[axis] + i, 0);
}

function unflatten(flat, shape) {
  const index = new Array(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

/* The value at an index of the whole array; undefined if that entry is not on the page. */
function valueAt(array, index) {
  let flat = 0;
  for (let axis = 0; axis < index.length; axis++) {
    const place = array.shown[axis] ? array.shown[axis].indexOf(index[axis]) : index[axis];
    if (place < 0) return undefined;
    flat = flat * array.part[axis] + place;
  }
  return array.values[flat];
}

/* The index in the whole array of an entry that is shown. */
function wholeIndex(array, place) {
  return place.map((i, axis) => (array.shown[axis] ? array.shown[axis][i] : i));
}

/* The flat indices in the whole array of all entries that are shown. */
function entriesShown(array) {
  return Array.from(array.values, (_, i) => flatten(wholeIndex(array, unflatten(i, array.part)), array.shape));
}

/* The slopes measured for a gradient, of its "op" or of the "loss": {map: {flat index: [slope, uncertainty]}, atKinks}; or
   null. `made` has its own if they disagree with it: others may have the same entries. */
function slopesOf(made, array, of) {
  const found = (made.slopes && made.slopes[of]) || (array.measured && array.measured[of]);
  if (!found) return null;
  if (!found.map) {
    const entries = found.entries === null ? entriesShown(array) : new Int32Array(bytesOf(found.entries)), slopes = new Float64Array(bytesOf(found.slopes));
    const off = new Float32Array(bytesOf(found.uncertainties));
    found.map = new Map(Array.from(entries, (flat, i) => [flat, [slopes[i], off[i]]]));
    found.atKinks = new Set(new Int32Array(bytesOf(found.kinks)));
  }
  return found;
}

// Names ----------------------------------------------------------------------------------------------------------------

function recording() {
  return page.recordings[state.moment];
}

/* A block of the map, with what the page leaves out because it is empty; and so those inside it. */
function complete(block) {
  for (const list of ["takes", "gives", "parameters", "blocks", "edges"]) block[list] = block[list] || [];
  block.gradients = block.gradients || {};
  block.blocks.forEach(complete);
}

for (const rec of page.recordings) {
  complete(rec.map);
  rec.frames.forEach((frame, number) => Object.assign(frame, { number, lines: [], inside: [], backwards: [] }));
  rec.lines.forEach((line, number) => {
    line.number = number;
    rec.frames[line.frame].lines.push(line);
  });
  for (const frame of rec.frames) {
    if (frame.parent !== null) rec.frames[frame.parent].inside.push(frame);
    if (frame.maker !== null) rec.frames[frame.maker].backwards.push(frame);
  }
  rec.turn = rec.lines.findIndex((line) => rec.frames[line.frame].back);
  if (rec.turn < 0) rec.turn = rec.lines.length;
}

/* The other backward that is chosen, if the page is at the moment that it belongs to. */
function other() {
  return state.alternative !== null && state.moment === page.recordings.length - 1 ? page.alternatives[state.alternative] : null;
}

/* [{name, ref, parts, slopes, right}] of what a line made; `right` is what is right if another backward is chosen, and this
   differs. */
function madeBy(line) {
  const changed = other() ? other().lines[line.number] : undefined;
  return line.made.map(([name, ref, parts, slopes]) => compared({ name, ref, parts, slopes, right: null }, changed));
}

function argumentsOf(frame) {
  const changed = other() ? other().arguments[frame.number] : undefined;
  return frame.arguments.map(([name, ref]) => compared({ name, ref, parts: null, right: null }, changed));
}

/* What was made, with what is right beside it. A model's own run is right, and the other is wrong; of a learner's function
   its own run is wrong, and the other is put right. */
function compared(made, changed) {
  const found = changed && changed.find(([name]) => name === made.name);
  if (!found) return made;
  return page.kind === "model" ? { name: made.name, ref: found[1], parts: null, right: made.ref } : { ...made, right: found[1] };
}

/* What a name stands for in a call, after a line: what the call made last, its arguments, or what its function keeps. */
function lookUp(name, frame, step = state.step) {
  for (let i = frame.lines.length - 1; i >= 0; i--) {
    if (frame.lines[i].number > step) continue;
    const found = madeBy(frame.lines[i]).find((made) => made.name === name);
    if (found) return { ...found, frame, line: frame.lines[i] };
  }
  const given = [...argumentsOf(frame), ...frame.own.map(([own, ref]) => ({ name: own, ref, right: null }))].find((argument) => argument.name === name);
  if (given) return { ...given, frame, line: null };
  return frame.maker === null ? null : lookUp(name, recording().frames[frame.maker], step);
}

/* The call that a sheet is shown for: of a backward, the forward call that defined it; the outermost one. */
function outermost(frame) {
  return frame.maker === null || recording().frames[frame.maker].sheet !== frame.sheet ? frame : outermost(recording().frames[frame.maker]);
}

/* A call with all calls of functions that were defined in it. */
function family(frame) {
  return [frame, ...frame.backwards.filter((one) => one.sheet === frame.sheet).flatMap(family)];
}

// Numbers --------------------------------------------------------------------------------------------------------------

function written(value, digits = 6) {
  if (value === undefined) return "not on this page";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 1);
  return text.replace("-", "−").replace(/\.?0*e/, "e").replace("e-", "e−").replace("e+", "e");
}

/* The words for an index along an axis: "Horatio", "head 2", "column 5". */
function labelOf(kind, i) {
  const labels = page.labels[kind];
  if (labels && labels[i] !== undefined) return labels[i];
  return kind === "head" ? `head ${i + 1}` : kind === "column" ? `column ${i}` : `${i}`;
}

function describedIndex(array, index) {
  const last = array.shape.length - 1;
  const said = index.map((i, axis) => {
    const kind = array.kinds[axis];
    if (kind === "example") return null;
    const labels = page.labels[kind];
    const bothWords = last > 0 && page.labels[array.kinds[last]] && page.labels[array.kinds[last - 1]];
    if (labels && labels[i] !== undefined) return `${bothWords ? (axis === last ? "column " : "row ") : ""}“${labels[i]}”`;
    if (kind === "head" || kind === "column") return labelOf(kind, i);
    return last === 0 ? `entry ${i}` : `${axis === last ? "column" : axis === last - 1 ? "row" : "part"} ${i}`;
  });
  return said.filter(Boolean).join(", ") || `entry ${index.join(", ")}`;
}
