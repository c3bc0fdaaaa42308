// The step plays: forward, block by block; then the gradient runs back.

const TICK = 420;

/* The closed blocks on the map, and the open ones' parts, from the bottom to the top. */
function blocksInOrder() {
  return allBlocks().filter(([key, block]) => mapState.pictures.has(key) && !mapState.pictures.get(key).box.inside);
}

/* What the gradient does at a block, in a few words. */
function whatHappens(block) {
  const takes = block.takes.filter(([name]) => block.gradients[name] !== undefined), into = normOf(block.dy);
  if (block.line !== undefined && into === null) return "";
  const sizes = takes.map(([name]) => `‖d${name}‖ = ${written(normOf(block.gradients[name]), takes.length > 1 ? 2 : 3)}`);
  const zeros = takes.map(([name]) => arrayOf(block.gradients[name])).find((array) => array && array.zeros > 0.1 * sizeOf(array) && array.zeros < sizeOf(array));
  const dead = zeros ? `, ${Math.round((100 * zeros.zeros) / sizeOf(zeros))} % zeros` : "";
  if (takes.length > 1) return `splits: ${sizes.join(", ")}${dead}`;
  const down = sentDown(block);
  if (!takes.length) return down ? `${down[0]}, for its parameters: ${written(normOf(down[1]), 2)}` : "";
  const out = normOf(block.gradients[takes[0][0]]);
  if (out === 0) return "nothing gets through";
  const factor = into > 0 ? out / into : 1, change = factor < 0.9 ? ", shrinks" : factor > 1.1 ? ", grows" : "";
  return `${sizes[0]}${change ? `${change} ×${written(factor, 3)}` : ""}${dead}`;
}

function playMap() {
  if (mapState.playing) return stopMap();
  const order = blocksInOrder(), svg = document.querySelector("#map svg"), says = document.getElementById("map-says");
  if (!svg) return undefined;
  const ticks = [...order.map((one) => ["up", ...one]), ...[...order].reverse().map((one) => ["down", ...one])];
  svg.classList.add("playing");
  svg.querySelectorAll(".lit-up, .lit-down").forEach((one) => one.classList.remove("lit-up", "lit-down"));
  const next = () => {
    if (!ticks.length) return stopMap();
    const [way, key, block] = ticks.shift(), { group } = mapState.pictures.get(key);
    svg.querySelectorAll(".now").forEach((one) => one.classList.remove("now"));
    group.classList.add(`lit-${way}`, "now");
    lightArrows(group, way);
    const y = block.gives.map((ref) => page.arrays[ref]).find(Boolean);
    says.textContent = way === "up" ? `forward: ${block.name}${y ? ` gives (${y.shape.join(", ")})` : ""}` : `backward: ${block.name} ${whatHappens(block)}`;
    group.scrollIntoView({ block: "nearest" });
    return undefined;
  };
  mapState.playing = setInterval(next, TICK);
  document.getElementById("play-map").textContent = "stop";
  return next();
}

/* Light the arrows that enter a block; of the open blocks around it also those that leave them. */
function lightArrows(group, way) {
  for (let block = group; block; block = block.parentElement.closest(".block")) {
    const place = block.dataset.key.split("/").pop(), leaving = block.querySelectorAll(":scope > g > .arrow:not([data-to])");
    for (const arrow of [...block.parentElement.querySelectorAll(`:scope > .arrow[data-to="${place}"]`), ...leaving]) arrow.classList.add(`lit-${way}`);
  }
}

function stopMap() {
  clearInterval(mapState.playing);
  mapState.playing = null;
  const svg = document.querySelector("#map svg");
  if (svg) {
    svg.classList.remove("playing");
    svg.querySelectorAll(".now").forEach((one) => one.classList.remove("now"));
  }
  document.getElementById("map-says").textContent = "";
  document.getElementById("play-map").textContent = "play the step";
}
