// The block that is chosen on the map: what it takes and gives, and what its backward makes of the gradient.

function showBlock() {
  const panel = document.getElementById("block"), block = blockAt(mapState.chosen);
  panel.replaceChildren(...(block ? partsOfBlock(block) : welcome()));
}

function welcome() {
  const isModel = page.kind === "model";
  return [
    element("h3", {}, isModel ? "One training step, and every number in it" : "A function and its backward, and every number in it"),
    element("p", {}, isModel ? "Words enter at the bottom. Each block makes an array of what it reads, until the loss stands at the top." : "The inputs enter at the bottom, and the result leaves at the top."),
    element("p", {}, element("span", { class: "key up" }), "blue, upward: the arrays, as they are computed"),
    element("p", {}, element("span", { class: "key down" }), "orange, downward: the gradient, as it comes back. A thin arrow means a small gradient; where it splits, adds up or dies, the arrows show it."),
    element("p", { class: "begin" }, storyExists() ? element("button", { type: "button", class: "inviting", onclick: () => goToStory(1) }, "Follow one gradient ▸") : null, element("button", { type: "button", onclick: playMap }, "Play the step")),
    element("p", { class: "soft" }, "Or click a block, to see what it takes and gives; + opens it into its parts, down to the lines of code with the array that each has made."),
    element("p", { class: "soft" }, "In the small pictures each entry of an array is a dot: blue below 0, white at 0, orange above."),
  ];
}

function partsOfBlock(block) {
  const frame = recording().frames[block.frame], isLine = block.line !== undefined, flow = isLine ? null : flowOf(frame);
  const path = frame.at ? element("span", { class: "soft" }, ` ${frame.at}`) : null;
  const parts = [element("h3", {}, block.name, path)], forward = firstLineOf(block), backward = flow && flow.ending ? flow.back.lines[0].number : null;
  parts.push(element("p", { class: "begin" }, element("button", { type: "button", class: "inviting", onclick: () => openLines(forward) }, "its lines, forward"),
    backward === null ? null : element("button", { type: "button", onclick: () => openLines(backward) }, "and backward"),
    block.blocks.length ? element("button", { type: "button", onclick: () => { toggleBlock(mapState.chosen); showBlock(); } }, mapState.open.has(mapState.chosen) ? "close it on the map" : "open it on the map") : null));
  if (isLine) parts.push(element("pre", {}, block.detail));
  else parts.push(formulasOf(page.sheets[frame.sheet]) || element("p", {}, page.sheets[frame.sheet].summary));
  const happens = whatHappens(block);
  parts.push(flowTable(block));
  if (happens) parts.push(element("p", {}, element("b", {}, "Going back: "), `the gradient${block.dy === undefined || normOf(block.dy) === null ? "" : ` comes in with size ${written(normOf(block.dy), 3)}, and`} ${happens.startsWith("‖") ? `leaves as ${happens}` : happens}.`));
  if (flow) for (const sign of signsOf(flow, flow.gradients && flow.gradients[0] ? flow.gradients[0].array : null)) if (sign.title && sign.className === "zeros") parts.push(element("p", {}, sign.title));
  const without = block.blocks.filter((inner) => inner.line !== undefined && normOf(inner.dy) === null).map((inner) => inner.name);
  if (without.length) parts.push(element("p", { class: "soft" }, `On the map, no orange arrow leads through ${without.join(", ")}: this backward makes no gradient of ${without.length > 1 ? "them" : "it"} by ${without.length > 1 ? "themselves" : "itself"}.`));
  return parts;
}

/* What a block takes, its parameters and what it gives, each with its gradient. */
function flowTable(block) {
  const table = element("table", { class: "flow" }, element("tr", {}, element("th", {}, ""), element("th", {}, "▲ array"), element("th", {}, "▼ its gradient")));
  const row = (what, name, ref, gradient) => {
    if (typeof ref !== "number") return;
    const back = typeof gradient === "number" ? gradient : null;
    table.append(element("tr", {}, element("th", { scope: "row" }, what, " ", element("code", {}, name)), element("td", {}, sizeButton(name, ref, false)), element("td", {}, back === null ? "–" : sizeButton(`d${name}`, back, true))));
  };
  for (const ref of block.gives.slice(0, 3)) row("gives", block.line === undefined ? whoMade(ref, "y", false).name : block.name, ref, block.dy);
  for (const [name, ref] of block.takes) if (!block.parameters.some(([own]) => own === name)) row("takes", name, ref, block.gradients[name]);
  for (const [name, ref, gradient] of block.parameters) row("has", name, ref, gradient);
  return table;
}

function sizeButton(name, ref, back) {
  const array = arrayOf(ref), norm = typeof array.norm !== "number" || !array.dtype.startsWith("float") ? "" : `‖·‖ ${written(array.norm, 3)}`;
  return element("button", { type: "button", class: "chip", title: `${name}, (${array.shape.join(", ")})`, onclick: () => pin(whoMade(ref, name, back)) }, thumbnail(array), element("span", {}, norm || `(${array.shape.join(", ")})`));
}
