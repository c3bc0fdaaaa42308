// Where the blocks and arrows of the map are: inputs at the bottom, a row for each step, blocks within open blocks.

const GIVEN = -1;                                      // an arrow's beginning: what the block around it was given
const BOX = { width: 164, height: 36, title: 18, pad: 14, beside: 22, gap: 27, lane: 17, apart: 3 };

/* The row of each block: one above the highest that it reads from. */
function rowsOf(block) {
  const rows = [];
  block.blocks.forEach((_, to) => {
    const from = block.edges.filter((edge) => edge[1] === to && edge[0] !== GIVEN).map(([start]) => rows[start]);
    rows.push(from.length ? 1 + Math.max(...from) : 0);
  });
  return rows;
}

/* The picture of what is inside a block: {width, height, spine, boxes, arrows}; spine: where it is entered and left.
   isOpen(key) says which blocks are open; the key of a block is its place in each block around it, "2/0/3". */
function pictureOfBlock(block, key, isOpen) {
  const rows = rowsOf(block), count = block.blocks.length ? 1 + Math.max(...rows) : 0;
  const boxes = block.blocks.map((inner, i) => {
    const own = key === "" ? String(i) : `${key}/${i}`, open = inner.blocks.length > 0 && isOpen(own);
    const inside = open ? pictureOfBlock(inner, own, isOpen) : null;
    const spine = open ? Math.max(inside.spine + BOX.pad, 24 + 8.2 * Math.min(20, inner.name.length)) : BOX.width / 2;      // its title beside the arrow
    const width = open ? spine + inside.width - inside.spine + BOX.pad : BOX.width;
    return { block: inner, key: own, row: rows[i], inside, width, spine, height: open ? inside.height + BOX.title : BOX.height };
  });
  const inRow = [...Array(count).keys()].map((row) => boxes.filter((box) => box.row === row));
  const heights = inRow.map((some) => Math.max(...some.map((box) => box.height)));
  const { lanes, right } = lanesOf(block, rows, inRow);
  const left = Math.max(0, ...inRow.map((some) => (some.length === 1 ? some[0].spine : rowWidth(some) / 2)));
  const height = heights.reduce((sum, one) => sum + one + BOX.gap, BOX.gap);
  let bottom = height - BOX.gap;
  inRow.forEach((some, row) => {
    let x = some.length === 1 ? left - some[0].spine : left - rowWidth(some) / 2;
    for (const box of some) {
      Object.assign(box, { x, y: bottom - (heights[row] + box.height) / 2 });
      x += box.width + BOX.beside;
    }
    bottom -= heights[row] + BOX.gap;
  });
  const picture = { width: left + right, height, spine: left, boxes };
  return { ...picture, arrows: arrowsOf(block, picture, lanes, key !== "") };
}

function rowWidth(some) {
  return some.reduce((sum, box) => sum + box.width + BOX.beside, -BOX.beside);
}

/* Arrows that pass a row go beside it, each in a lane of its own; those of one array share theirs.
   right: how far the boxes and lanes reach to the right of the spine. */
function lanesOf(block, rows, inRow) {
  const reach = inRow.map((some) => (some.length === 1 ? some[0].width - some[0].spine : rowWidth(some) / 2));
  const lanes = new Map(), widest = (from, to) => Math.max(0, ...reach.slice(from, to));
  const last = rows.length ? Math.max(...rows) + 1 : 0;
  const long = [...block.edges, ...leaving(block).map((from) => [from, null, "", block.gives[0]])];
  for (const [from, to, , ref] of long) {
    const begin = from === GIVEN ? 0 : rows[from] + 1, end = to === null ? last : rows[to];
    if (end <= begin || lanes.has(`${from} ${ref}`)) continue;
    lanes.set(`${from} ${ref}`, widest(begin, end) + BOX.lane * (0.7 + [...lanes.values()].length));
  }
  return { lanes, right: Math.max(widest(0, reach.length), ...lanes.values(), 0) + (lanes.size ? BOX.lane : 0) };
}

/* The blocks whose array the block around them gives. */
function leaving(block) {
  const found = block.blocks.map((inner, i) => i).filter((i) => block.blocks[i].gives.some((ref) => block.gives.includes(ref)));
  return found.slice(-1);
}

/* [{from, to, name, ref, gradient, points}]; to is null for what leaves the block. */
function arrowsOf(block, picture, lanes, outer) {
  const arrows = block.edges.map(([from, to, name, ref, gradient]) => ({ from, to, name, ref, gradient }));
  for (const from of leaving(block)) arrows.push({ from, to: null, name: "y", ref: block.gives[0], gradient: block.dy === undefined ? null : block.dy });
  for (const arrow of arrows) {
    const source = picture.boxes[arrow.from], target = picture.boxes[arrow.to];
    const beside = arrows.filter((one) => one.to === arrow.to && arrow.to !== null).sort((a, b) => sideOf(a, picture, lanes) - sideOf(b, picture, lanes));
    const shift = (beside.indexOf(arrow) - (beside.length - 1) / 2) * Math.min(34, BOX.width / (beside.length + 1)) || 0;
    const begin = source ? [source.x + source.spine, source.y] : [picture.spine, picture.height];
    const end = target ? [target.x + target.spine + (target.inside ? 0 : shift), target.y + target.height] : [picture.spine, outer ? -BOX.title : 0];
    Object.assign(arrow, { headUp: target ? !target.inside : !outer, headDown: source ? !source.inside : !outer });    // no head where it goes on inside a block
    const lane = lanes.get(`${arrow.from} ${arrow.ref}`), isLong = source ? !target || target.row > source.row + 1 : target && target.row > 0;
    const low = begin[1] - BOX.gap / 2, high = end[1] + BOX.gap / 2, side = picture.spine + (lane || 0);
    const straight = Math.abs(begin[0] - end[0]) < 0.5;
    if (lane !== undefined && isLong) arrow.points = [begin, [begin[0], low], [side, low], [side, high], [end[0], high], end];
    else arrow.points = straight ? [begin, end] : [begin, [begin[0], high], [end[0], high], end];
  }
  return arrows;
}

/* Where an arrow comes from, to order those that end in one block. */
function sideOf(arrow, picture, lanes) {
  const source = picture.boxes[arrow.from], target = picture.boxes[arrow.to];
  const isLong = source ? target.row > source.row + 1 : target.row > 0;
  return isLong ? picture.spine + (lanes.get(`${arrow.from} ${arrow.ref}`) || 0) : source ? source.x + source.spine : picture.spine;
}

/* A path of an SVG along right-angled points, `apart` to the left of it, with rounded corners. */
function pathAlong(points, apart = 0) {
  const moved = points.map((point, i) => {
    const normals = [[points[i - 1], point], [point, points[i + 1]]].filter(([a, b]) => a && b).map(([a, b]) => {
      const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
      return [(b[1] - a[1]) / length, -(b[0] - a[0]) / length];
    });
    const [one, other] = normals.length > 1 ? normals : [normals[0], normals[0]];
    const same = Math.abs(one[0] - other[0]) + Math.abs(one[1] - other[1]) < 1e-6;
    return same ? [point[0] + apart * one[0], point[1] + apart * one[1]] : [point[0] + apart * (one[0] + other[0]), point[1] + apart * (one[1] + other[1])];
  });
  let path = `M${moved[0].map((one) => one.toFixed(1)).join(" ")}`;
  for (let i = 1; i < moved.length - 1; i++) {
    const [a, corner, b] = [moved[i - 1], moved[i], moved[i + 1]], near = (p) => {
      const length = Math.hypot(p[0] - corner[0], p[1] - corner[1]) || 1, part = Math.min(6, length / 2) / length;
      return `${(corner[0] + (p[0] - corner[0]) * part).toFixed(1)} ${(corner[1] + (p[1] - corner[1]) * part).toFixed(1)}`;
    };
    path += `L${near(a)}Q${corner.map((one) => one.toFixed(1)).join(" ")} ${near(b)}`;
  }
  return `${path}L${moved[moved.length - 1].map((one) => one.toFixed(1)).join(" ")}`;
}
