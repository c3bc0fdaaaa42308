// "Follow one gradient": from the loss to the vector of one word, in steps of two sentences with the page's own numbers.

const storyState = { at: 0, steps: null };

function storyExists() {
  return page.kind === "model" && blocksLike(/^cross_entropy$/).some(([, loss]) => loss.gradients.logits !== undefined);
}

/* The blocks of the whole map of these names or ops, the last in the forward first. */
function blocksLike(pattern) {
  return allBlocks().filter(([, block]) => block.line === undefined && !block.given && pattern.test(page.sheets[recording().frames[block.frame].sheet].title)).reverse();
}

/* Indices of the row of one word in an array (…, T, k): all other axes at `fixed`, or 0. */
function rowOf(array, row, fixed = {}) {
  const last = array.shape.length - 1;
  return array.shape.map((size, axis) => (axis === last - 1 ? row : fixed[axis] || 0)).slice(0, last);
}

function valuesOfRow(array, row, fixed) {
  const lead = rowOf(array, row, fixed), size = array.shape[array.shape.length - 1];
  return [...Array(size).keys()].map((j) => [j, valueAt(array, [...lead, j])]).filter(([, value]) => value !== undefined);
}

function sizeOfRow(array, row, fixed) {
  return Math.sqrt(valuesOfRow(array, row, fixed).reduce((sum, [, value]) => sum + value * value, 0));
}

function largest(values) {
  return values.reduce((best, one) => (Math.abs(one[1]) > Math.abs(best[1]) ? one : best));
}

function percent(share) {
  return `${written(100 * share, share > 0.99 && share < 1 ? 4 : 2)} %`;
}

/* What the story is about: the loss, its rows, and the word with the largest loss; or one with two before it, whose loss is
   at least half as large. */
function subject() {
  const [key, loss] = blocksLike(/^cross_entropy$/)[0] || [];
  if (!loss || loss.gradients.logits === undefined) return null;
  const targets = argumentsOf(recording().frames[loss.frame]).find((one) => one.name === "targets");
  const dlogits = arrayOf(loss.gradients.logits), ids = targets && arrayOf(targets.ref);
  if (!ids || !dlogits || dlogits.shape.length < 2) return null;
  const asked = Array.from(ids.values), classes = dlogits.shape[dlogits.shape.length - 1], counted = asked.filter((id) => id >= 0).length;
  const probability = (row, j) => { const g = valueAt(dlogits, entryAt(dlogits, row, j, classes)); return g === undefined ? undefined : counted * g + (asked[row] === j ? 1 : 0); };
  const labels = [page.labels.word, page.words].find((some) => some && Array.from(some).length === asked.length) || [];
  const rows = asked.map((id, row) => [row, id, id < 0 ? undefined : probability(row, id)]).filter(([, , p]) => p !== undefined);
  if (!rows.length) return null;
  const worst = (some) => some.reduce((one, other) => (other[2] < one[2] ? other : one)), words = rows.filter(([row]) => row > 1 && /\p{L}/u.test(labels[row] || ""));
  const first = worst(rows), best = words.length ? worst(words) : first, [row, id, right] = Math.log(best[2]) < 0.5 * Math.log(first[2]) ? best : first;
  return { key, loss, dlogits, row, id, right, isLargest: right === first[2], counted, classes, probability, rows: asked.length, words: Array.from(labels) };
}

/* " of the vector of “Horatio”", or nothing if the rows are not words */
function ofWord({ words, row }, before = " for the vector of ") {
  return words[row] === undefined ? "" : `${before}“${words[row]}”`;
}

/* True for an array with a row for each row that is followed, or for each word. */
function hasRows(array, about) {
  return Boolean(array) && array.shape.length > 1 && array.shape[array.shape.length - 2] === about.rows;
}

function wordOf(id) {
  const names = page.labels.class || page.labels.vocabulary || {};
  return `“${names[id] === undefined ? id : names[id]}”`;
}

/* [{title, key, name, ref, back, entry, says}]: the steps for this model; those whose parts it does not have are left out.
   From step to step `about` says which row of the arrays is followed, and which words the rows are, if they are words. */
function storySteps() {
  if (storyState.steps && storyState.moment === state.moment) return storyState.steps;
  const about = subject(), steps = [];
  storyState.moment = state.moment;
  if (!about) return (storyState.steps = []);
  for (const step of [stepOfProbability, stepOfLoss, stepOfReadout, stepOfNorm, stepOfFork, stepOfPool, stepOfWeights, stepOfWeightGradients, stepOfScores, stepOfPaths, stepOfVector]) {
    const found = step(about);
    if (found) steps.push(found);
  }
  if (page.alternatives.length) steps.push({ title: "Change one line, and see", key: null, wrong: true, says: `All of this rests on a few lines of code. Choose a mistake on the right: every block whose gradient it changes is marked on the map, and the code shows the line, wrong beside right.` });
  return (storyState.steps = steps);
}

function stepOfProbability(about) {
  const { key, loss, dlogits, row, id, right, probability, classes } = about;
  const others = [...Array(classes).keys()].map((j) => [j, j === id ? undefined : probability(row, j)]).filter(([, p]) => p !== undefined);
  const [wrong, p] = largest(others), where = ofWord(about, " after "), thing = page.labels.class ? "class" : "word";
  return { title: "How wrong was the guess?", key, name: "logits", ref: loss.takes[0][1], entry: entryAt(dlogits, row, wrong, classes),
    says: `The right ${thing}${where} is ${wordOf(id)}, and the model gives it a probability of ${percent(right)}; it gives ${percent(p)} to ${wordOf(wrong)}. The loss is −ln ${written(right, 3)} = ${written(-Math.log(right), 3)}${about.rows > 1 ? `, ${about.isLargest ? "the largest" : "one of the largest"} in this text` : ""}: let us follow what it sends back.` };
}

/* The index in an array (…, c) of a row of all its rows together, and a column. */
function entryAt(array, row, j, classes) {
  return unflatten(row * classes + j, array.shape);
}

function stepOfLoss({ key, loss, dlogits, row, id, right, counted, classes, probability }) {
  const mine = valueAt(dlogits, entryAt(dlogits, row, id, classes));
  return { title: "At the loss: p − y", key, name: "dlogits", ref: loss.gradients.logits, back: true, entry: entryAt(dlogits, row, id, classes),
    says: `The gradient with respect to the scores is p − y, where y is 1 for what is right and 0 for the rest${counted > 1 ? `, divided by the ${counted} words of the text` : ""}: for ${wordOf(id)} it is ${counted > 1 ? `(${written(right, 3)} − 1)/${counted}` : `${written(right, 3)} − 1`} = ${written(mine, 3)}, for every wrong one its probability${counted > 1 ? `/${counted}` : ""}. Descent pushes the right score up and all others down, each in proportion to its probability.` };
}

function stepOfReadout(about) {
  const { dlogits, row } = about;
  const found = allBlocks().filter(([, block]) => block.name === "readout").pop();
  if (!found) return null;
  const [key, block] = found, taken = block.takes[0], dx = arrayOf(block.gradients[taken[0]]);
  if (!hasRows(dx, about)) return null;
  const width = dx.shape[dx.shape.length - 1], size = sizeOfRow(dx, row), zero = size === 0;
  return { title: "Through the readout", key, name: `d${taken[0]}`, ref: dx.ref, back: true, entry: entryOfRow(dx, row),
    says: zero ? `The readout multiplies the gradient by its weights W, and they are all 0 at this moment: nothing gets through to the layers below. Only W itself learns at first${page.recordings.length > 1 ? "; move “training” to a later moment to see more" : ""}.`
      : `The readout computed scores x·W, so its backward multiplies by Wᵀ: ${dlogits.shape[dlogits.shape.length - 1].toLocaleString("en")} errors become ${width} numbers of dx${ofWord(about)}, a row of size ${written(size, 3)} (the map's sizes are of all rows together). A small move of this vector against dx would raise the right score.` };
}

/* The entry of a row that is the largest in size */
function entryOfRow(array, row, fixed) {
  return [...rowOf(array, row, fixed), largest(valuesOfRow(array, row, fixed))[0]];
}

function stepOfNorm(about) {
  const { row } = about;
  const found = blocksLike(/^(layer_norm|rms_norm|LayerNorm|RMSNorm)$/)[0];
  if (!found) return null;
  const [key, block] = found, frame = recording().frames[block.frame], dx = arrayOf(block.gradients.x), dy = arrayOf(block.dy);
  if (!hasRows(dx, about) || !dy || dy.norm === 0) return null;
  const came = sizeOfRow(dy, row), left = sizeOfRow(dx, row), isLayerNorm = /layer/i.test(page.sheets[frame.sheet].title);
  const [, scale] = block.parameters.find(([name]) => name === "gamma") || [], gamma = scale === undefined ? null : arrayOf(scale), spread = lookUp("r", frame, Infinity), r = spread && valuesOfRow(arrayOf(spread.ref), row)[0];
  const first = gamma ? `The gradient is multiplied by γ, here ${written(gamma.low, 3)} to ${written(gamma.high, 3)}. Then its` : "The gradient's", last = r ? `, 1/spread = ${written(r[1], 3)}` : ", 1/spread";
  return { title: isLayerNorm ? "Through a layer norm" : "Through an RMS norm", key, name: "dx", ref: dx.ref, back: true, entry: entryOfRow(dx, row),
    says: `${first} ${isLayerNorm ? "mean is subtracted, so that the row adds up to 0, and so is its part along the input: moving the input in these two directions changes nothing, because the norm takes away its mean and its length." : "part along the input is subtracted: moving the input in this direction changes nothing, because the norm takes away its length."} The rest is multiplied by r${last}. In all, the size of this row ${left < came ? "falls" : "grows"} from ${written(came, 3)} to ${written(left, 3)}.` };
}

function stepOfFork(about) {
  const { row } = about;
  const sums = allBlocks().filter(([, block]) => /^add( x|$)/.test(block.name) && block.takes.length === 2).reverse();
  if (!sums.length) return null;
  const [key, block] = sums[0], [[skip], [branch]] = block.takes, one = arrayOf(block.gradients[skip]), other = arrayOf(block.gradients[branch]);
  if (!hasRows(one, about) || !other || one.norm === 0) return null;
  const kept = sizeOfRow(one, row), into = sizeOfRow(other, row), width = other.shape[other.shape.length - 1], zeros = valuesOfRow(other, row).filter(([, value]) => value === 0).length;
  return { title: "The residual sum: the gradient splits", key, name: `d${branch}`, ref: other.ref, back: true, entry: entryOfRow(other, row),
    says: `Here the forward added a branch to x, and a sum hands its gradient to both of its terms: ${written(kept, 3)} goes straight down past the branch, as it is, and ${written(into, 3)} into the branch${zeros && zeros < width ? `, where the ReLU has set ${zeros} of ${width} entries to 0` : ""}. That straight way is one reason why gradients reach the bottom of deep models.` };
}

/* After the pooling each word has a gradient: from here on the one that gets the most is followed. */
function stepOfPool(about) {
  const found = blocksLike(/^mean_pool$/)[0], [key, block] = found || [], dx = block && arrayOf(block.gradients.x);
  if (about.rows !== 1 || !dx || dx.shape.length !== 3 || dx.norm === 0) return null;
  const sizes = [...Array(dx.shape[1]).keys()].map((row) => [row, sizeOfRow(dx, row)]);
  Object.assign(about, { rows: dx.shape[1], words: page.words.length === dx.shape[1] ? page.words : [], row: largest(sizes)[0] });
  return { title: "The mean over the words", key, name: "dx", ref: dx.ref, back: true, entry: entryOfRow(dx, about.row),
    says: `A mean hands each of its ${about.rows} words the same gradient, divided by their number. We follow it${ofWord(about, " to ")}, where it has the size ${written(sizeOfRow(dx, about.row), 3)}.` };
}

/* The last attention, and the head in which the word's gradient of A is the largest. */
function attentionOf(about) {
  const { row } = about, [key, block] = blocksLike(/^(grouped_)?attention$/).find(([, one]) => isSelfAttention(one, about)) || [];
  if (!block) return null;
  const frame = recording().frames[block.frame], back = frame.backwards.find((one) => one.lines.length);
  const [A, dA, dS] = [["A", frame], ["dA", back], ["dscores", back]].map(([name, of]) => (of ? lookUp(name, of, Infinity) : null));
  if (!A || !dA || !dS || arrayOf(dS.ref).norm === 0) return null;
  const heads = [...Array(arrayOf(A.ref).shape[1]).keys()].map((h) => [h, sizeOfRow(arrayOf(dS.ref), row, { 1: h })]);
  return { key, A, dA, dS, head: largest(heads)[0] };
}

/* True if words attend to words of the same text: A is (1, H, T, T) */
function isSelfAttention(block, { words, rows }) {
  const A = lookUp("A", recording().frames[block.frame], Infinity), array = A && arrayOf(A.ref);
  return Boolean(array) && words.length === rows && array.shape.length === 4 && array.shape[2] === rows && array.shape[3] === rows;
}

function stepOfWeights(about) {
  const { row, words } = about, found = attentionOf(about);
  if (!found) return null;
  const A = arrayOf(found.A.ref), weights = valuesOfRow(A, row, { 1: found.head }), [to, most] = largest(weights), seen = weights.filter(([, value]) => value > 0).length;
  return { title: "Attention: which words did it look at?", key: found.key, name: "A", ref: A.ref, head: found.head, entry: [0, found.head, row, to],
    says: `In head ${found.head + 1}, the one whose scores get the most gradient here, “${words[row]}” looked at the ${seen} word${seen === 1 ? "" : "s"} that it may see, most at “${words[to]}”, with weight ${percent(most)}. Its row of A says how much of each word's value went into it, and the same weights now hand the gradient back to those values.` };
}

function stepOfWeightGradients(about) {
  const { row, words } = about, found = attentionOf(about);
  if (!found) return null;
  const dA = arrayOf(found.dA.ref), A = arrayOf(found.A.ref), seen = valuesOfRow(dA, row, { 1: found.head }).filter(([j]) => valueAt(A, [0, found.head, row, j]) > 0), [to, most] = largest(seen);
  return { title: "dA: was that a good look?", key: found.key, name: "dA", ref: dA.ref, back: true, head: found.head, entry: [0, found.head, row, to],
    says: `dA asks of each word before it: how would the loss change if “${words[row]}” looked at it a little more? For “${words[to]}” it is ${written(most, 3)}, so a little more of it would make the loss ${most > 0 ? "larger" : "smaller"}.` };
}

function stepOfScores(about) {
  const { row, words } = about, found = attentionOf(about);
  if (!found) return null;
  const dS = arrayOf(found.dS.ref), A = arrayOf(found.A.ref), values = valuesOfRow(dS, row, { 1: found.head }), [to, most] = values.reduce((one, other) => (other[1] > one[1] ? other : one)), masked = valuesOfRow(A, row, { 1: found.head }).filter(([, value]) => value === 0).length;
  const [least, low] = values.reduce((one, other) => (other[1] < one[1] ? other : one));
  return { title: "dS, in the code dscores: softmax compares", key: found.key, name: "dS", ref: dS.ref, back: true, head: found.head, entry: [0, found.head, row, to],
    says: `The weights of a row always add up to 1, so only differences count: dS = A·(dA − the row's mean of dA, weighted by A), and the row adds up to 0. ${masked ? `The ${masked} word${masked === 1 ? "" : "s"} behind the mask get${masked === 1 ? "s" : ""} exactly 0; descent` : "Descent"} lowers the score of “${words[to]}” (${written(most, 2)}) and raises that of “${words[least]}” (${written(low, 2)}).` };
}

function stepOfPaths(about) {
  const { row } = about, found = attentionOf(about);
  if (!found) return null;
  const key = found.key.slice(0, found.key.lastIndexOf("/")), block = blockAt(key), dx = arrayOf(block.gradients.x), inside = block.blocks.filter((one) => /^(query|key|value)$/.test(one.name));
  const paths = inside.map((one) => [one.name, arrayOf(one.gradients[one.takes[0][0]])]).filter(([, array]) => hasRows(array, about));
  if (!hasRows(dx, about) || paths.length < 3) return null;
  const parts = { op: "+", signs: paths.map(() => 1), of: paths.map(([name, array]) => ({ src: `by the ${name}`, value: array.ref })) };
  return { title: "Three ways back into one vector", key, name: "dx", ref: dx.ref, back: true, entry: entryOfRow(dx, row), parts,
    says: `The vector was used as query, as key and as value, so three gradients are added, of sizes ${paths.map(([name, array]) => `${written(sizeOfRow(array, row), 2)} by the ${name}`).join(", ")}. They point in different directions, so the size of the sum, ${written(sizeOfRow(dx, row), 3)}, is less than the three together. The gradients of all words that looked at this one come through key and value; below, the residual's straight way joins.` };
}

function stepOfVector(about) {
  const tables = allBlocks().filter(([, block]) => block.name === "word vectors" && block.dy !== undefined), flow = recording().flow || [];
  const [key, block] = tables.find(([, one]) => hasRows(arrayOf(one.dy), about)) || tables.pop() || [], dx = block && arrayOf(block.dy);
  if (!dx || dx.shape.length !== 3 || dx.norm === 0) return null;
  const words = [about.words, page.words].find((some) => some.length === dx.shape[1]) || [], same = hasRows(dx, about);
  const row = same ? about.row : largest([...Array(dx.shape[1]).keys()].map((one) => [one, sizeOfRow(dx, one)]))[0], word = words[row];
  const first = same && flow.length ? arrayOf(flow[0][1]) : null, others = first && first.shape[0] === words.length ? valuesOfRow(first, row).filter(([j, value]) => j !== row && value > 0) : [];
  const far = others.length ? largest(others) : null, times = words.filter((one) => one === word).length;
  return { title: "At the bottom: the vector of one word", key, name: "dx", ref: dx.ref, back: true, entry: entryOfRow(dx, row),
    says: `The same happens in each layer on the way down. The vector${word === undefined ? "" : ` of “${word}”`} gets a gradient of size ${written(sizeOfRow(dx, row), 3)}${times > 1 ? `, added to that of the other place${times > 2 ? "s" : ""} where the word stands` : ""}${about.counted > 1 ? ", of all losses together," : ""} and a step of descent moves it the opposite way${far ? "" : ": that is all that learning is"}. ${far ? `The loss we began with reached further than its own word: through attention it sent ${written(far[1] / about.counted, 2)} to “${words[far[0]]}” (${about.counted > 1 ? `${written(far[1], 2)} in Words, “${flow[0][0]}”, where a loss is not divided by the ${about.counted} words` : "see Words"}).` : ""}`.trim() };
}

// Showing a step -------------------------------------------------------------------------------------------------------

function goToStory(number) {
  const steps = storySteps();
  if (!steps.length) return;
  if (storyState.at && steps[storyState.at - 1] && steps[storyState.at - 1].wrong && other()) chooseAlternative(null);
  storyState.at = Math.max(0, Math.min(steps.length, number));
  const bar = document.getElementById("story");
  bar.hidden = storyState.at === 0;
  document.body.classList.toggle("in-story", storyState.at > 0);
  rememberStory();
  if (!storyState.at) return;
  const step = steps[storyState.at - 1];
  stopMap();
  showView("map");
  document.getElementById("story-title").textContent = `${storyState.at} of ${steps.length} · ${step.title}`;
  document.getElementById("story-says").textContent = step.says;
  document.getElementById("story-back").disabled = storyState.at === 1;
  document.getElementById("story-on").textContent = storyState.at === steps.length ? "end" : "next ▸";
  if (step.wrong) { mapState.chosen = null; buildMap(); showTab("wrong"); return; }
  chooseBlock(step.key);
  state.head = step.head || 0;
  const made = whoMade(step.ref, step.name, Boolean(step.back));
  pin({ ...made, name: step.name, parts: step.parts || made.parts });
  state.entry = step.entry || null;
  showArray();
}

/* The page's address says which step is shown, so that it can be sent to somebody. */
function rememberStory() {
  const hash = storyState.at ? `#step=${storyState.at}` : location.hash.includes("quiet") ? "#quiet" : "#";
  try {
    if (location.hash !== hash) history.replaceState(null, "", hash);
  } catch { /* a page within a notebook has no address of its own */ }
}

function storyInAddress() {
  const found = /step=(\d+)/.exec(location.hash);
  return found ? Number(found[1]) : 0;
}
