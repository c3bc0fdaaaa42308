// The map: the blocks of this computation, with what flows up through them, and the gradient that flows down.

const mapState = { open: null, chosen: null, pictures: new Map(), playing: null };
const LEFT = 112, RIGHT = 370, THUMB = { width: 84, height: 24 };      // what stands beside the blocks
const SVG = document.querySelector("#map svg").namespaceURI;

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function blockAt(key) {
  return key === null ? null : key.split("/").reduce((block, i) => block && block.blocks[i], recording().map);
}

/* [key, block] of every block, the outer ones first. */
function allBlocks(block = recording().map, key = "") {
  return block.blocks.flatMap((inner, i) => {
    const own = key === "" ? String(i) : `${key}/${i}`;
    return [[own, inner], ...allBlocks(inner, own)];
  });
}

function isLayer(block) {
  return block.blocks.some((inner) => inner.line === undefined && inner.blocks.length);
}

/* At first the outer blocks are open that are made of layers, if there are few of them; of a function, all but ops in ops. */
function openAtFirst() {
  const open = new Set(), outer = recording().map.blocks, layers = outer.filter(isLayer);
  const few = layers.reduce((sum, block) => sum + block.blocks.length, outer.length) <= 16;
  if (page.kind === "function") outer.forEach((_, i) => open.add(String(i)));
  else outer.forEach((block, i) => { if (few && isLayer(block) && block.blocks.length > 1 && /^(layer|Encoder|Decoder)/.test(block.name)) open.add(String(i)); });
  return open;
}

function normOf(ref) {
  const about = typeof ref === "number" ? page.arrays[ref] : null;
  return about && typeof about.norm === "number" ? about.norm : null;
}

/* Widths for the sizes of arrays: logarithmic, from the smallest to the largest of the map. */
function widthsOf(sizes) {
  const logs = sizes.filter((size) => size > 0).map(Math.log10), low = Math.min(...logs), high = Math.max(...logs);
  return (size) => (size > 0 ? 1.2 + 5 * (high - low < 1e-9 ? 0.5 : (Math.log10(size) - low) / (high - low)) : 1);
}

function buildMap() {
  const map = recording().map;
  if (!map.blocks.length) return;
  if (mapState.open === null) mapState.open = openAtFirst();
  mapState.alternative = state.alternative;
  const edges = [map, ...allBlocks().map(([, block]) => block)].flatMap((block) => block.edges);
  const up = widthsOf(edges.map(([, , , ref]) => normOf(ref) || 0)), down = widthsOf(edges.map((edge) => normOf(edge[4]) || 0));
  const picture = pictureOfBlock(map, "", (key) => mapState.open.has(key)), wide = document.body.dataset.view === "map" && document.getElementById("map").clientWidth > 680;
  const side = wide ? LEFT : 12, head = wide ? 18 : 2, width = picture.width + side + (wide ? RIGHT : 12), height = picture.height + head + 22;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Map of the blocks, from the input at the bottom to the result at the top" });
  svg.append(drawn("defs", {}, headOfArrow("up"), headOfArrow("down")));
  const whole = drawn("g", { transform: `translate(${side} ${head})` });
  mapState.pictures.clear();
  mapState.forks = [];
  drawPicture(whole, picture, map, up, down);
  if (wide) drawSides(whole, picture);
  svg.append(whole, drawn("text", { x: side + picture.spine, y: height - 7, class: "words", "text-anchor": "middle" }, fitting(wordsRead(), Math.floor(width / 7))));
  document.getElementById("map").replaceChildren(svg);
  fitMap();
  markMap();
}

/* Beside each closed block: on the left the array that it gives, on the right the gradient that it sends down. */
function drawSides(group, picture) {
  const left = -THUMB.width - 16, right = picture.width + 16, says = right + THUMB.width + 8;
  group.append(drawn("text", { x: left, y: -6, class: "column up" }, "▲ what it gives"), drawn("text", { x: right, y: -6, class: "column down" }, other() ? "▼ the right gradient, and how far the wrong one is off" : "▼ the gradient that it sends down"));
  for (const { box } of mapState.pictures.values()) {
    const { block } = box, y = box.top + (box.height - THUMB.height) / 2;
    if (box.inside || box.crowded) continue;
    const array = block.gives.map((ref) => arrayOf(ref)).find(Boolean), down = block.line !== undefined && normOf(block.dy) === null ? null : sentDown(block);
    if (array) group.append(smallPicture(array, left, y, "what it gives"));
    if (down) group.append(smallPicture(arrayOf(down[1]), right, y, `the gradient ${down[0]}`));
    const notes = box.beside.map((one) => (other() && differs(one.block) ? `${box.beside.length > 1 ? `d${one.block.name} ` : ""}${howWrong(one.block)}` : whatHappens(one.block)));
    group.append(noteBeside(notes.filter(Boolean).join(", "), says, y + 16));
  }
  for (const { y, sizes, together } of other() ? [] : mapState.forks) {
    const sum = together === null ? "" : `, size ${written(together, 2)}`, why = "Gradients are added entry by entry: they point in different directions, so the size of their sum is less than the sum of their sizes.";
    group.append(drawn("text", { x: says, y: y + 4, class: "happens" }, drawn("title", {}, why), `added: ${sizes.map((size) => written(size, 2)).join(" + ")}${sum}`));
  }
}

/* [name, reference] of the gradient that a block sends down, or else of its parameters' */
function sentDown(block) {
  const given = block.takes.find(([name]) => block.gradients[name] !== undefined);
  if (given) return [`d${given[0]}`, block.gradients[given[0]]];
  const own = block.parameters.find(([, , gradient]) => typeof gradient === "number");
  return own ? [`d${own[0]}`, own[2]] : null;
}

/* Where an array is read several times, and its gradients are added: [{y, sizes, together}] */
function forksOf(picture, block, top, height) {
  const groups = Map.groupBy ? [...Map.groupBy(picture.arrows.filter((one) => typeof one.gradient === "number"), (one) => `${one.from} ${one.ref}`).values()] : [];
  return groups.filter((some) => some.length > 1).map((some) => {
    const source = picture.boxes[some[0].from], [name] = block.takes.find(([, ref]) => ref === some[0].ref) || [];
    const together = source ? source.block.dy : block.gradients[name];
    return { y: top + (source ? source.y - BOX.gap / 2 : height - BOX.gap / 2), sizes: some.map((one) => normOf(one.gradient)), together: normOf(together) };
  });
}

/* A note, in two lines if it is long */
function noteBeside(text, x, y) {
  const parts = text.split(", "), half = text.length > 41 ? Math.ceil(parts.length / 2) : parts.length;
  const lines = [parts.slice(0, half), parts.slice(half)].filter((some) => some.length).map((some, i, all) => some.join(", ") + (i < all.length - 1 ? "," : ""));
  return drawn("text", { class: "happens" }, ...lines.map((line, i) => drawn("tspan", { x, y: y + 13 * (i - (lines.length - 1) / 2) }, line)));
}

function smallPicture(array, x, y, title) {
  const picture = pictureOf(array);
  return drawn("g", {}, drawn("title", {}, title), drawn("image", { x, y, width: THUMB.width, height: THUMB.height, preserveAspectRatio: "none", href: picture.toDataURL() }), drawn("rect", { x, y, width: THUMB.width, height: THUMB.height, class: "frame" }));
}

/* The map fills its column, but is not drawn larger than 1.3 times. */
function fitMap() {
  const frame = document.getElementById("map"), svg = frame.querySelector("svg");
  if (!svg) return;
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const scale = Math.max(0.45, Math.min(1.3, (frame.clientWidth - 4) / width, Math.max(0.92, (frame.clientHeight - 6) / height)));
  svg.setAttribute("width", width * scale);
  svg.setAttribute("height", height * scale);
}

function headOfArrow(side) {
  return drawn("marker", { id: `head-${side}`, class: side, viewBox: "0 0 8 8", refX: 5.5, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, drawn("path", { d: "M0 0L8 4L0 8z" }));
}

function wordsRead() {
  return page.words.length ? page.words.join(" ") : argumentsOf(recording().frames[0]).filter((one) => typeof one.ref === "number").map((one) => one.name).join(", ");
}

/* "loss 1.558" */
function resultOfAll() {
  const lines = recording().lines.slice(0, recording().turn).flatMap((line) => line.made);
  const loss = lines.filter(([name, ref]) => name === "loss" && ref && ref.text !== undefined).pop();
  return loss ? `loss ${Number(loss[1].text).toPrecision(4)}` : "";
}

function drawPicture(group, picture, block, up, down, top = 0, crowded = false) {
  if (!crowded) mapState.forks.push(...forksOf(picture, block, top, picture.height));
  for (const arrow of picture.arrows) group.append(drawArrow(arrow, up, down));
  for (const box of picture.boxes) {
    box.top = top + box.y;
    box.beside = picture.boxes.filter((one) => one.row === box.row);
    box.crowded = crowded || (box.beside.length > 1 && !(box === box.beside[0] && box.beside.every((one) => one.block.given)));      // it has no room beside it; arguments share theirs
    group.append(drawBox(box, up, down));
  }
}

function drawArrow({ name, ref, gradient, points, to, from, headUp, headDown }, up, down) {
  const array = page.arrays[ref], back = normOf(gradient), isFloat = array.dtype.startsWith("float"), both = gradient !== null && gradient !== undefined;
  const group = drawn("g", { class: "arrow", "data-to": to, "data-from": from });
  const says = `${name} (${array.shape.join(", ")})${isFloat ? `: size ‖${name}‖ = ${written(normOf(ref), 3)}` : ""}${both ? `; its gradient: size ‖d${name}‖ = ${written(back, 3)}` : isFloat ? "; its gradient is no array of its own" : ""}`;
  group.append(drawn("title", {}, says));
  group.append(drawn("path", { d: pathAlong(points, both ? BOX.apart : 0), class: "up", "stroke-width": isFloat ? up(normOf(ref)) : 1.2, "marker-end": headUp ? "url(#head-up)" : null, pathLength: 1 }));
  if (both) group.append(drawn("path", { d: pathAlong([...points].reverse(), BOX.apart), class: back === 0 ? "down nothing" : "down", "stroke-width": down(back), "marker-end": headDown ? "url(#head-down)" : null, pathLength: 1 }));
  group.append(drawn("path", { d: pathAlong(points), class: "touch", onclick: () => pinArrow(name, ref, gradient) }));
  return group;
}

/* Show the gradient of an arrow, or if it has none its array. */
function pinArrow(name, ref, gradient) {
  const made = typeof gradient === "number" ? whoMade(gradient, `d${name}`, true) : whoMade(ref, name, false);
  pin(made);
}

/* What a line made, found by its array; with its terms, if it has any. */
function whoMade(ref, name, back) {
  const rec = recording(), lines = rec.lines.filter((line) => rec.frames[line.frame].back === back);
  const found = lines.flatMap((line) => madeBy(line).map((made) => ({ ...made, frame: rec.frames[line.frame], line }))).filter((made) => made.ref === ref || made.right === ref);
  return found.find((made) => made.parts) || found[0] || { name, ref, parts: null, right: null, frame: rec.frames[0], line: null };
}

function drawBox(box, up, down) {
  const { block, inside, key } = box, isLine = block.line !== undefined, canOpen = block.blocks.length > 0;
  const y = block.gives.map((ref) => page.arrays[ref]).find(Boolean), shape = y ? `(${y.shape.join(", ")})` : "";
  const group = drawn("g", { class: `block${inside ? " open" : ""}${isLine || block.given ? " line-block" : ""}${kindOf(block)}`, transform: `translate(${box.x} ${box.y})`, "data-key": key });
  const label = [block.name, block.detail, shape].filter(Boolean).join(", ");
  const face = drawn("g", { role: "button", tabindex: 0, "aria-label": label, "aria-expanded": canOpen ? String(Boolean(inside)) : null, class: "face",
    onclick: () => chooseBlock(key, true), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); chooseBlock(key, true); } } });
  face.append(drawn("title", {}, label), drawn("rect", { width: box.width, height: box.height, rx: 7 }));
  const middle = inside ? 9 : box.width / 2, anchor = inside ? "start" : "middle";
  face.append(drawn("text", { x: middle, y: inside ? 16 : 16.5, "text-anchor": anchor, class: "name" }, fitting(block.name, 20)));
  const result = /loss/.test(kindOf(block)) ? resultOfAll() : "";
  const under = isLine && block.detail ? block.detail.replace(/^return |, backward$/g, "") : [block.detail, shape, result].filter(Boolean).join(" · ");
  if (!inside) face.append(drawn("text", { x: box.width / 2, y: 30, "text-anchor": "middle", class: "under" }, fitting(under, 25)));
  group.append(face);
  if (canOpen) group.append(drawn("g", { class: "toggle", transform: `translate(${box.width - 13} 11)`, onclick: () => toggleBlock(key) }, drawn("circle", { r: 8 }), drawn("text", { "text-anchor": "middle", y: 4 }, inside ? "−" : "+")));
  if (inside) {
    const at = drawn("g", { transform: `translate(${box.spine - inside.spine} ${BOX.title})` });
    drawPicture(at, inside, block, up, down, box.top + BOX.title, box.crowded);
    group.append(at);
  }
  mapState.pictures.set(key, { group, box });
  return group;
}

function fitting(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/* The colour of a block: attention, a norm, a sum, what has parameters, or the loss. */
function kindOf(block) {
  const title = block.line === undefined ? page.sheets[recording().frames[block.frame].sheet]?.title || "" : block.name;
  if (block.given) return " given";
  if (/attention/i.test(title)) return " attention";
  if (/norm/i.test(title)) return " norm";
  if (/^add( x|$)/.test(block.name) || /residual/.test(title)) return " sum";
  return /cross_entropy|mse/.test(title) ? " loss" : "";
}

function toggleBlock(key) {
  if (mapState.open.has(key)) mapState.open.delete(key);
  else mapState.open.add(key);
  buildMap();
}

/* Choose a block, and open it into its parts; one that is chosen again shows its lines. */
function chooseBlock(key, byHand = false) {
  if (byHand && document.body.dataset.view === "lines") return openLines(firstLineOf(blockAt(key)));
  const block = blockAt(key), again = mapState.chosen === key && byHand;
  const hasParts = block.blocks.some((inner) => inner.line === undefined && !inner.given);
  mapState.chosen = key;
  if (byHand && !again && hasParts) mapState.open.add(key);
  for (let outer = key; outer.includes("/"); ) { outer = outer.slice(0, outer.lastIndexOf("/")); mapState.open.add(outer); }
  buildMap();
  const { group } = mapState.pictures.get(key);
  if (byHand) group.querySelector(".face").focus({ preventScroll: true });
  group.scrollIntoView({ block: byHand ? "nearest" : "center", inline: "nearest" });
  if (again) openLines(firstLineOf(block));
  else showTab("block");
  return undefined;
}

function firstLineOf(block) {
  return block.line === undefined ? firstInside(recording().frames[block.frame], makesArray) : block.line;
}

/* Mark the chosen block; where the lines are shown, the block whose line runs. */
function markMap() {
  const key = document.body.dataset.view === "lines" ? keyOfLine() : mapState.chosen, differing = new Set();
  if (other()) for (const [own, block] of allBlocks()) if (differs(block)) differing.add(own);
  for (const [own, { group }] of mapState.pictures) {
    group.classList.toggle("chosen", own === key);
    group.classList.toggle("backward", own === key && document.body.dataset.view === "lines" && currentFrame().back);
    group.classList.toggle("differs", differing.has(own));
  }
  const marked = mapState.pictures.get(key);
  if (marked && document.body.dataset.view === "lines") marked.group.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function differs(block) {
  return block.line === undefined && wrongGradients(block).length > 0;
}

/* Of a block, or of an argument, the gradients that differ with the chosen backward: [{name, array, right}] */
function wrongGradients(block) {
  const found = (flowOf(recording().frames[block.frame]).gradients || []).filter((one) => one.right !== null);
  return block.given ? found.filter((one) => one.name === `d${block.name}`) : found;
}

/* "wrong by 35 %": the gradient that it sends down with the chosen backward */
function howWrong(block) {
  const [{ array, right }] = wrongGradients(block);
  return differenceText(array.ref, right).replace("≠", "wrong");
}

/* The innermost block on the map that the current line belongs to. */
function keyOfLine() {
  const frames = recording().frames;
  for (let frame = currentFrame(); frame; frame = frame.parent === null ? null : frames[frame.parent]) {
    const top = outermost(frame), maker = top.maker === null ? null : outermost(frames[top.maker]);
    const found = [...mapState.pictures].filter(([, { box }]) => box.block.line === undefined && [top.number, maker && maker.number].some((number) => number === box.block.frame)).pop();
    if (found) return found[0];
  }
  return null;
}
