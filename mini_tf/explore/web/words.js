// The words: which word's loss sends gradient to which word, and what attention does with them, head by head.

const attentionState = { layer: 0, head: 0 };

function showWords() {
  const panel = document.getElementById("words"), rec = recording(), width = Math.max(240, panel.clientWidth - 24 || 330);
  const parts = [];
  if (rec.flow && rec.flow.length) {
    const rows = arrayOf(rec.flow[0][1]).shape[0], each = rows === page.words.length && page.asked.length === rows;
    const asked = (i) => (each ? `${page.words[i]}→${page.asked[i]}` : page.asked.length === 1 ? page.asked[0] : "all losses");
    parts.push(element("h3", {}, "Which word's loss sends gradient to which word"),
      element("p", { class: "soft" }, `${each ? "A row is the loss of predicting the word after the arrow" : "The row is the loss"}; a column is a word; the colour is the size of the gradient of that loss${each ? " alone, not divided by the number of words," : ""} with respect to that word's vector. The last layer is at the top.${other() ? " These are the gradients of the right backward." : ""}`));
    const said = element("p", { class: "entry", "aria-live": "polite" }, "Click a square.");
    parts.push(said);
    for (const [label, ref] of [...rec.flow].reverse()) {
      const array = arrayOf(ref);
      const show = (place) => {
        const [i, j] = place, value = valueAt(array, place), row = array.values.slice(i * array.part[1], (i + 1) * array.part[1]);
        const column = Array.from({ length: rows }, (_, k) => array.values[k * array.part[1] + j]), share = (some) => Math.round((100 * value) / (some.reduce((a, b) => a + b, 0) || 1));
        said.textContent = `${label}: the loss of ${asked(i)} sends a gradient of size ${written(value, 4)} to “${page.words[j]}”: ${share(Array.from(row))} % of what it sends, and ${share(column)} % of what “${page.words[j]}” gets.`;
      };
      parts.push(element("h4", {}, label), heatMap(array, { choose: show, width, caption: label, labels: { row: asked, column: (j) => page.words[j] } }).figure, scaleOf(array.most, array.low));
    }
  }
  parts.push(...attentionMaps(width));
  if (!parts.length) parts.push(element("p", { class: "soft" }, "There are no words here."));
  panel.replaceChildren(...parts);
}

/* The calls of attention, in the order of the forward. */
function attentions() {
  return recording().frames.filter((frame) => frame.shown && page.sheets[frame.sheet].title === "attention" && page.sheets[frame.sheet].op && outermost(frame) === frame);
}

/* Where in the model an attention is: "layer 1", "decoder.layer 2.cross_attention" */
function attentionName(frame, k) {
  let around = frame;
  while (around && !around.at) around = around.parent === null ? null : recording().frames[around.parent];
  return around ? around.at.replace(/^trunk\./, "").replace(/\.attention$/, "") : `attention ${k + 1}`;
}

function attentionMaps(width) {
  const found = attentions();
  if (!found.length) return [];
  attentionState.layer = Math.min(attentionState.layer, found.length - 1);
  const frame = found[attentionState.layer], back = frame.backwards.find((one) => one.lines.length), end = Infinity;
  const A = lookUp("A", frame, end), heads = A ? arrayOf(A.ref).shape[1] : 1;
  attentionState.head = Math.min(attentionState.head, heads - 1);
  const choice = (names, which) => element("p", { class: "tiles" }, ...names.map((name, k) => element("button", { type: "button", class: attentionState[which] === k ? "chosen" : "", onclick: () => { attentionState[which] = k; showWords(); } }, name)));
  const said = element("p", { class: "entry", "aria-live": "polite" }, "Click a square.");
  const parts = [element("h3", {}, "Attention"), element("p", { class: "soft" }, "A: how much each word (row) takes from each word (column). dA and dS: the gradient with respect to those weights, and to the scores before softmax. dA is not 0 for words that are masked; but A is 0 there, so dS is 0, too."), choice(found.map(attentionName), "layer"), choice([...Array(heads).keys()].map((k) => `head ${k + 1}`), "head"), said];
  for (const [name, of, label] of [["A", frame, "A"], ["dA", back, "dA"], ["dscores", back, "dS"]]) {
    const made = of ? lookUp(name, of, end) : null, array = made && arrayOf(made.ref);
    if (!array || array.shape.length !== 4) continue;
    const map = heatMap(array, { tile: Math.min(attentionState.head, layoutOf(array).count - 1), width, caption: label, choose: (place) => {
      said.textContent = `${label} at ${describedIndex(array, wholeIndex(array, place))}: ${written(valueAt(array, wholeIndex(array, place)), 5)}. Enter, or a double click, opens the entry.`;
    }, open: (place) => { state.head = attentionState.head; pin(made); state.entry = wholeIndex(array, place); showArray(); } });
    parts.push(element("h4", {}, label), map.figure, scaleOf(array.most, array.low));
  }
  return parts;
}
