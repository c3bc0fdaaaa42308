// What an entry is made of: the terms of a sum, the factors of a product, from the parts of the line's expression.

/* The index in an operand that was broadcast to the result's shape. */
function broadcastIndex(index, shape) {
  const late = index.slice(index.length - shape.length);
  return late.map((i, axis) => (shape[axis] === 1 ? 0 : i));
}

function partAt(part, index) {
  const array = arrayOf(part.value);
  if (!array) return part.value && part.value.text !== undefined ? Number(part.value.text) : undefined;
  return valueAt(array, index);
}

function shapeOf(part) {
  const array = arrayOf(part.value);
  return array ? array.shape : [];
}

/* All indices of a shape's axes, the others fixed. */
function* along(axes, shape, fixed) {
  const sizes = axes.map((axis) => shape[axis]);
  for (let flat = 0; flat < sizes.reduce((a, b) => a * b, 1); flat++) {
    const index = [...fixed], some = unflatten(flat, sizes);
    axes.forEach((axis, k) => (index[axis] = some[k]));
    yield index;
  }
}

function nameAlong(part, axes, index) {
  const array = arrayOf(part.value);
  return axes.map((axis) => labelOf(array.kinds[axis], index[axis])).join(", ");
}

/* {says, rows: [{label, text, value, part, index}], rest} of an entry of a part's result; null if it has no terms.
   rows are sorted, the largest first, where there are many. */
function termsOf(part, index) {
  const [a, b] = part.of || [];
  switch (part.op) {
    case "+":
      return {
        says: "the sum of",
        rows: part.of.map((one, k) => operand(one, index, part.signs[k] < 0 ? "− " : "+ ", part.signs[k])),
      };
    case "*":
      return { says: "the product of", rows: part.of.map((one) => operand(one, index, "× ")) };
    case "/":
      return { says: "the quotient of", rows: [operand(a, index, ""), operand(b, index, "÷ ")] };
    case "**":
      return { says: "a power:", rows: [operand(a, index, ""), operand(b, index, "to the power ")] };
    case "@":
      return productOfMatrices(a, b, index);
    case "sum":
    case "mean":
      return reduced(part, a, index);
    case "sum_to": {
      const shape = shapeOf(a), result = shapeOf(part), lead = shape.length - result.length;
      const axes = shape.map((_, axis) => axis).filter((axis) => axis < lead || (result[axis - lead] === 1 && shape[axis] > 1));
      const fixed = shape.map((_, axis) => (axis < lead ? 0 : index[axis - lead]));
      return summed(a, axes, fixed, "the sum of");
    }
    case "reshape":
      return inner(a, unflatten(flatten(index, shapeOf(part)), shapeOf(a)), String(shapeOf(a)) === String(shapeOf(part)) ? "a copy of" : "the same number, before the reshape:");
    case "swapaxes": {
      const from = [...index], [i, j] = part.axes;
      [from[i], from[j]] = [from[j], from[i]];
      return inner(a, from, "the same number, before the transpose:");
    }
    case undefined:
      return null;
    default:
      return { says: `${part.op} of`, rows: [operand(a, index, "")] };
  }
}

function operand(part, index, before, sign = 1) {
  const at = broadcastIndex(index, shapeOf(part)), value = partAt(part, at);
  return { label: before + (part.op === "+" && !/^[+−]/.test(before) ? `(${part.src})` : part.src), value: value === undefined ? undefined : sign * value, part, index: at };
}

function inner(part, index, says) {
  const deeper = part.op ? termsOf(part, index) : null;
  return deeper || { says, rows: [operand(part, index, "")] };
}

function productOfMatrices(a, b, index) {
  const left = shapeOf(a), right = shapeOf(b);
  if (left.length < 2 || right.length < 2) return null;
  const [i, j] = index.slice(-2), lead = index.slice(0, -2), count = left[left.length - 1];
  const before = (shape) => broadcastIndex(lead, shape.slice(0, -2)), rows = [];
  const array = arrayOf(a.value), other = arrayOf(b.value);
  for (let k = 0; k < count; k++) {
    const x = valueAt(array, [...before(left), i, k]), y = valueAt(other, [...before(right), k, j]);
    if (x === undefined || y === undefined) continue;
    const kind = array.kinds[left.length - 1] || other.kinds[right.length - 2];
    rows.push({ label: labelOf(kind, k), text: `${written(x, 4)} × ${written(y, 4)}`, value: x * y });
  }
  return sorted(rows, count, `the sum of ${count} products, ${a.src} · ${b.src}`);
}

function reduced(part, a, index) {
  const shape = shapeOf(a), axes = part.axes;
  const fixed = [];
  let next = 0;
  shape.forEach((_, axis) => fixed.push(axes.includes(axis) ? (part.keep && next++, 0) : index[next++]));
  const count = axes.reduce((product, axis) => product * shape[axis], 1);
  return summed(a, axes, fixed, part.op === "mean" ? `the mean (1/${count} of the sum) of` : "the sum of", part.op === "mean" ? count : 1);
}

function summed(part, axes, fixed, says, divisor = 1) {
  const shape = shapeOf(part), rows = [];
  let count = 0;
  for (const index of along(axes, shape, fixed)) {
    count += 1;
    const value = partAt(part, index);
    if (value !== undefined) rows.push({ label: nameAlong(part, axes, index), value: value / divisor, part, index });
  }
  return sorted(rows, count, `${says} ${count} entries of ${part.src}`);
}

function sorted(rows, count, says) {
  rows.sort((x, y) => Math.abs(y.value) - Math.abs(x.value));
  return { says, rows, count };
}
