// Heat maps: blue below zero, white at zero, orange above; the same in light and dark.

const NEGATIVE = [31, 95, 168], POSITIVE = [194, 86, 12], NOT_A_NUMBER = [122, 20, 140], WHOLE_NUMBER = [90, 98, 108];

/* [red, green, blue] of a value. Whole numbers, such as the ids of words, and truth values are grey. */
function colourOf(value, most, form = "f8") {
  if (Number.isNaN(value)) return NOT_A_NUMBER;
  const share = most > 0 ? Math.min(1, Math.abs(value) / most) ** 0.7 : 0;       // small entries stay visible
  const end = form === "i4" || form === "u1" ? WHOLE_NUMBER : value < 0 ? NEGATIVE : POSITIVE;
  return end.map((channel) => 255 + (channel - 255) * share);
}

/* How an array is laid out: the last two axes are rows and columns; axes before them lie side by side. */
function layoutOf(array) {
  const last = array.part.length - 1, row = last > 0 ? last - 1 : null, column = last >= 0 ? last : null;
  const tiles = array.part.map((size, axis) => axis).filter((axis) => axis < last - 1 && array.part[axis] !== 1);
  return {
    row, column, tiles,
    rows: row === null ? 1 : array.part[row],
    columns: column === null ? 1 : array.part[column],
    count: tiles.reduce((product, axis) => product * array.part[axis], 1),
  };
}

/* The place among the shown entries of a row and column of a tile. */
function placeOf(array, layout, tile, i, j) {
  const place = array.part.map(() => 0);
  const tiles = unflatten(tile, layout.tiles.map((axis) => array.part[axis]));
  layout.tiles.forEach((axis, k) => (place[axis] = tiles[k]));
  if (layout.row !== null) place[layout.row] = i;
  if (layout.column !== null) place[layout.column] = j;
  return place;
}

const pictures = new Map();

/* A canvas with a pixel for each entry; of one tile, or of all of them side by side. */
function pictureOf(array, tile = null, most = array.most) {
  const key = `${array.ref} ${tile} ${most}`;
  if (pictures.has(key)) return pictures.get(key);
  const layout = layoutOf(array), tiles = tile === null ? [...Array(layout.count).keys()] : [tile];
  const canvas = document.createElement("canvas");
  const gap = tiles.length > 1 ? 1 : 0;
  canvas.width = Math.max(1, tiles.length * (layout.columns + gap) - gap);
  canvas.height = Math.max(1, layout.rows);
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  tiles.forEach((one, k) => {
    for (let i = 0; i < layout.rows; i++) {
      for (let j = 0; j < layout.columns; j++) {
        const value = array.values[flatten(placeOf(array, layout, one, i, j), array.part)];
        const at = 4 * (i * canvas.width + k * (layout.columns + gap) + j);
        const [r, g, b] = colourOf(value, most, array.form);
        image.data.set([r, g, b, 255], at);
      }
    }
  });
  context.putImageData(image, 0, 0);
  if (pictures.size > 3000) pictures.clear();
  pictures.set(key, canvas);
  return canvas;
}

/* A small picture for the margin of a line. */
function thumbnail(array) {
  const picture = pictureOf(array), canvas = document.createElement("canvas");
  const wide = Math.min(84, Math.max(14, picture.width * 3)), high = Math.min(20, Math.max(8, picture.height * 3));
  canvas.className = "thumbnail";
  canvas.width = wide;
  canvas.height = high;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = picture.width > wide || picture.height > high;
  context.drawImage(picture, 0, 0, wide, high);
  return canvas;
}

/* A large heat map with labels on both axes. chosen: place of the entry that is marked; choose(place) when one is clicked;
   point(place) when one is pointed at; hatched(place): true for entries that have no value. mark(place), of the result, marks one.
   tallest: pixels at most. open(place) when it is opened, by Enter; labels: {row, column}, functions from the number of a row or a column to its label, in place of the array's own. */
function heatMap(array, { tile = 0, chosen = null, choose = () => {}, labels = {}, caption = "", width = 330, most, open = () => {}, point = null, hatched = null, tallest = 420 } = {}) {
  const layout = layoutOf(array), { rows, columns } = layout;
  const kinds = { row: layout.row === null ? "" : array.kinds[layout.row], column: layout.column === null ? "" : array.kinds[layout.column] };
  const whole = (axis, i) => (axis === null ? 0 : array.shown[axis] ? array.shown[axis][i] : i);
  const named = (side, i) => (labels[side] ? labels[side](i) : labelOf(kinds[side], whole(layout[side], i)));
  const hasWords = (side) => labels[side] || page.labels[kinds[side]];
  const left = labels.row ? 100 : hasWords("row") ? 72 : 26, top = hasWords("column") ? 62 : 18;
  const cell = { wide: Math.max(2, Math.min(26, (width - left) / columns)) };
  const least = hasWords("row") && rows <= 64 ? 12 : 2;                // so that every word has its label
  cell.high = Math.max(least, Math.min(26, cell.wide * (rows > columns ? 1 : 3), tallest / rows, rows === 1 ? 26 : 22));
  const canvas = element("canvas", { class: "map", tabindex: 0, role: "img", "aria-label": `${caption} ${array.shape.join(" by ")}` });
  const picture = pictureOf(array, tile, most || array.most);
  canvas.width = Math.round(columns * cell.wide);
  canvas.height = Math.round(rows * cell.high);
  const context = canvas.getContext("2d"), without = [];
  for (let i = 0; hatched && i < rows; i++) for (let j = 0; j < columns; j++) if (hatched(placeOf(array, layout, tile, i, j))) without.push([i, j]);

  function draw(marked) {
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    for (const [i, j] of without) hatch(context, j * cell.wide, i * cell.high, cell.wide, cell.high);
    if (!marked) return;
    const [i, j] = [layout.row === null ? 0 : marked[layout.row], layout.column === null ? 0 : marked[layout.column]];
    context.lineWidth = 2;
    context.strokeStyle = "#000";
    context.strokeRect(j * cell.wide + 0.5, i * cell.high + 0.5, Math.max(cell.wide - 1, 3), Math.max(cell.high - 1, 3));
  }
  function mark(place) {
    chosen = place;
    draw(chosen);
  }
  function select(place) {
    mark(place);
    choose(place);
  }
  function placeAt(event) {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor(((event.clientX - box.left) / box.width) * columns), i = Math.floor(((event.clientY - box.top) / box.height) * rows);
    return placeOf(array, layout, tile, Math.max(0, Math.min(rows - 1, i)), Math.max(0, Math.min(columns - 1, j)));
  }

  draw(chosen);
  canvas.addEventListener("click", (event) => select(placeAt(event)));
  if (point) canvas.addEventListener("mousemove", (event) => point(placeAt(event)));
  canvas.addEventListener("dblclick", () => chosen && open(chosen));
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!(event.key in moves) && event.key !== "Enter") return;
    const now = chosen || placeOf(array, layout, tile, 0, 0), [di, dj] = moves[event.key] || [0, 0];
    const i = (layout.row === null ? 0 : now[layout.row]) + di, j = (layout.column === null ? 0 : now[layout.column]) + dj;
    event.preventDefault();
    event.stopPropagation();
    if (i < 0 || j < 0 || i >= rows || j >= columns) return;
    const place = placeOf(array, layout, tile, i, j);
    if (event.key === "Enter" && chosen) open(place);
    else select(place);
  });

  const ticks = (side, count, size) => {
    const every = hasWords(side) && size >= 11 ? 1 : Math.max(1, Math.ceil(count / (side === "row" ? 12 : 8)));
    return [...Array(count).keys()].filter((i) => i % every === 0 && (size * every >= 10));
  };
  const figure = element("div", { class: "map-frame" });
  figure.style.gridTemplateColumns = `${left}px auto`;
  const above = element("div", { class: "column-labels" }), beside = element("div", { class: "row-labels" });
  above.style.height = `${top}px`;
  for (const j of ticks("column", columns, cell.wide)) {
    const label = element("span", { class: hasWords("column") ? "slanted" : "" }, String(named("column", j)).replace(/^column /, ""));
    label.style.left = `${(j + 0.5) * cell.wide}px`;
    above.append(label);
  }
  for (const i of rows > 1 || hasWords("row") ? ticks("row", rows, cell.high) : []) {
    const label = element("span", {}, String(named("row", i)));
    label.style.top = `${(i + 0.5) * cell.high}px`;
    beside.append(label);
  }
  figure.append(element("span"), above, beside, canvas);
  return { figure, canvas, mark };
}

/* An entry without a value: grey, with lines across it if there is room. */
function hatch(context, left, top, wide, high) {
  context.save();
  context.beginPath();
  context.rect(Math.floor(left), Math.floor(top), Math.ceil(wide) + 1, Math.ceil(high) + 1);
  context.clip();
  context.fillStyle = "#c9ced5";
  context.fill();
  context.strokeStyle = "#8a929c";
  context.lineWidth = 1;
  context.beginPath();
  if (high >= 8) {
    for (let x = left - high; x < left + wide; x += 4) {
      context.moveTo(x, top + high);
      context.lineTo(x + high, top);
    }
  }
  context.stroke();
  context.restore();
}

function drawScale(canvas) {
  drawScaleFrom(canvas, -1);
}

function drawScaleFrom(canvas, low) {
  const context = canvas.getContext("2d"), wide = canvas.width;
  for (let x = 0; x < wide; x++) {
    const [r, g, b] = colourOf(low + ((1 - low) * x) / (wide - 1), 1);
    context.fillStyle = `rgb(${r},${g},${b})`;
    context.fillRect(x, 0, 1, canvas.height);
  }
}

/* −most … most with the colours between; of sizes 0 … most */
function scaleOf(most, low = -most) {
  if (most === 0) return element("span", { class: "scale-row" }, "all of it is 0");
  const canvas = element("canvas", { class: "scale", width: 120, height: 10 });
  drawScaleFrom(canvas, low < 0 ? -1 : 0);
  return element("span", { class: "scale-row" }, `${low < 0 ? `−${written(most, 3)}` : "0"} `, canvas, ` ${written(most, 3)}`);
}
