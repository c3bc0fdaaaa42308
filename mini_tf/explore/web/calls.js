// The calls, nested, the loss at the top; ▲ what each returns on the way up, ▼ the gradient that it sends down.

const callRows = new Map();

/* What a call takes and gives: its y, the dy that its backward got, the dx that it gave back. */
function flowOf(frame) {
  const last = frame.lines[frame.lines.length - 1];
  const y = last ? madeBy(last).map((one) => arrayOf(one.ref)).find(Boolean) : null;
  const text = last ? madeBy(last).find((one) => one.name === "loss" && one.ref && one.ref.text !== undefined) : null;
  const back = frame.backwards.find((one) => one.back && one.shown && one.lines.length);
  if (!back) {                                         // it hands on what its last call gave back: so its first call's dx is its own
    const [first] = stepsInside(frame.inside), inner = first ? flowOf(first.frame) : null;
    return inner ? { ...inner, y, loss: text, given: null, adds: [] } : { y, loss: text, back: null };
  }
  const given = argumentsOf(back).map((one) => arrayOf(one.ref)).find(Boolean) || null;
  const ending = back.lines[back.lines.length - 1];
  const gradients = madeBy(ending).map((one) => ({ name: one.name, array: arrayOf(one.ref), right: one.right })).filter((one) => one.array);
  const adds = back.lines.filter((line) => line.made.some(([, , parts]) => parts && isSumOfArrays(parts)));
  return { y, loss: text, back, ending, given, gradients, adds };
}

function isSumOfArrays(part) {
  const inner = part.op === "reshape" ? part.of[0] : part;
  return inner.op === "+" && !inner.change && inner.of.filter((one) => typeof one.value === "number" && arrayOf(one.value).shape.length > 1).length > 1;
}

/* Calls that have a backward, as a tree: calls without one are skipped. */
function stepsInside(frames) {
  return frames.flatMap((frame) => {
    if (!frame.shown || frame.back) return [];
    const inside = stepsInside(frame.inside);
    const isLayer = inside.length && frame.at && !page.sheets[frame.sheet].title.includes(".");
    return isLayer || frame.backwards.some((one) => one.back && one.shown) ? [{ frame, inside }] : inside;
  });
}

function buildCalls() {
  callRows.clear();
  const list = document.getElementById("calls"), rec = recording();
  const tree = stepsInside(rec.frames.filter((frame) => frame.parent === null));
  const sizes = { up: [], down: [] };
  const collect = (nodes) => nodes.forEach(({ frame, inside }) => {
    const flow = flowOf(frame);
    if (flow.y && flow.y.norm) sizes.up.push(flow.y.norm);
    for (const { array } of (flow.gradients || []).slice(0, 1)) if (array.norm) sizes.down.push(array.norm);
    collect(inside);
  });
  collect(tree);
  list.replaceChildren(...callItems(tree, sizes, 0));
}

function callItems(nodes, sizes, depth, around = null) {
  return [...nodes].reverse().map((node) => callItem(node, sizes, depth, around));
}

/* A call's name in the tree: its path in the model without that of the call around it, "layer 1"; ".branch"; or its title. */
function callName(frame, around) {
  const title = page.sheets[frame.sheet].title, at = frame.at, method = title.includes(".") ? title.slice(title.indexOf(".")) : "";
  if (!at || !around) return title;
  if (at === around.at) return method || title;
  return `${around.at && at.startsWith(`${around.at}.`) ? at.slice(around.at.length + 1) : at}${method}`;
}

function callItem({ frame, inside }, sizes, depth, around) {
  const flow = flowOf(frame), down = flow.gradients && flow.gradients[0] ? flow.gradients[0].array : null;
  const item = element("li", {});
  const name = element("button", { type: "button", class: "call-name", title: `${titleOf(frame)}${frame.at ? ` · ${frame.at}` : ""}`, onclick: () => goTo(firstInside(frame, makesArray)) }, callName(frame, around));
  name.style.paddingLeft = `${8 + 8 * depth}px`;
  if (inside.length) {
    item.classList.toggle("closed", depth >= 4);
    const fold = element("button", { type: "button", class: "fold", "aria-label": "open or close", onclick: () => item.classList.toggle("closed") });
    fold.style.left = `${8 * depth - 6}px`;
    item.append(fold);
  }
  const row = element("div", { class: "call" }, name,
    !flow.loss ? bar(flow.y, sizes.up, "up", "‖y‖", () => goTo(lastInside(frame))) : element("span", { class: "scalar", title: flow.loss.ref.text }, Number(flow.loss.ref.text).toPrecision(4)),
    bar(down, sizes.down, "down", flow.gradients && flow.gradients[0] ? `‖${flow.gradients[0].name}‖` : "", () => flow.ending && goTo(flow.ending.number)),
    element("span", { class: "signs" }, ...signsOf(flow, down)));
  if (flow.gradients && flow.gradients.some((one) => one.right !== null)) row.classList.add("differs");
  item.append(row);
  callRows.set(frame.number, { row, item });
  if (inside.length) item.append(element("ol", {}, ...callItems(inside, sizes, depth + 1, frame)));
  return item;
}

function sizeOf(array) {
  return array.shape.reduce((a, b) => a * b, 1);
}

/* Where the gradient splits, adds up, shrinks or grows, dies. */
function signsOf(flow, down) {
  const signs = [];
  const sign = (text, title, kind = "") => signs.push(element("abbr", { title, class: kind }, text));
  const several = (flow.gradients || []).filter((one) => one.array.shape.length > 1 && one.array.norm !== 0);
  if (several.length > 1) sign("↙↘", `it splits: ${several.map((one) => `${one.name} ${written(one.array.norm, 3)}`).join(", ")}`);
  for (const line of flow.adds || []) sign("+", `gradients from several paths are added, at line ${line.first}`);
  if (flow.given && down && flow.given.norm > 0 && down.norm !== null) {
    const factor = down.norm / flow.given.norm;
    if (down.norm > 0 && (factor < 0.5 || factor > 2)) sign(`×${written(factor, 2)}`, `‖${flow.gradients[0].name}‖ = ${written(factor, 3)} · the size of the gradient that came in`, "size");
  }
  for (const { name, array } of flow.gradients || []) {
    const size = sizeOf(array);
    if (array.norm === 0 && flow.given && flow.given.norm > 0) {
      sign(`${name} = 0`, `no gradient at all gets through to ${name}`, "zeros");
      continue;
    }
    if (!flow.given || size !== sizeOf(flow.given) || array.zeros - flow.given.zeros < 0.1 * size) continue;
    sign(`${Math.round((100 * array.zeros) / size)}% 0`, `${Math.round((100 * array.zeros) / size)} % of the entries of ${name} are 0: there the gradient stops`, "zeros");
  }
  return signs;
}

function bar(array, sizes, side, what, go) {
  if (!array || array.norm === null) return element("span", { class: "bar" });
  if (array.norm === 0) return element("span", { class: "scalar", title: `${what} = 0: nothing gets through` }, "0");
  const logs = sizes.filter((size) => size > 0).map(Math.log10), low = Math.min(...logs), high = Math.max(...logs);
  const share = high - low < 1e-9 ? 1 : 0.12 + (0.88 * (Math.log10(array.norm) - low)) / (high - low);
  const button = element("button", { type: "button", class: `bar ${side}`, onclick: go, title: `${what} = ${written(array.norm, 4)} (bars are logarithmic; the longest is ${written(high === -Infinity ? 0 : 10 ** high, 3)}), shape (${array.shape.join(", ")})` }, element("i"));
  button.firstChild.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return button;
}

/* Mark the call that runs, open what it is in, and show it. */
function updateCalls() {
  for (const { row } of callRows.values()) row.classList.remove("now", "now-back");
  let frame = currentFrame(), found = null;
  const back = frame.back;
  while (frame && !found) {
    const top = outermost(frame), maker = top.maker === null ? null : recording().frames[top.maker];
    found = callRows.get(top.number) || (maker && callRows.get(outermost(maker).number));     // a method backward's forward
    frame = frame.parent === null ? null : recording().frames[frame.parent];
  }
  if (!found) return;
  for (let item = found.item.parentElement.closest("li"); item; item = item.parentElement.closest("li")) item.classList.remove("closed");
  found.row.classList.add(back ? "now-back" : "now");
  found.row.scrollIntoView({ block: "nearest" });
}
