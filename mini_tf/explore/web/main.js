// Stepping, playing, choosing, and the keys.

let playing = null;

function currentTab() {
  return document.querySelector('#tabs [aria-selected="true"]').dataset.tab;
}

function showTab(name) {
  for (const tab of document.querySelectorAll("#tabs [role=tab]")) {
    const chosen = tab.dataset.tab === name;
    tab.setAttribute("aria-selected", String(chosen));
    document.getElementById(tab.dataset.tab).hidden = !chosen;
  }
  ({ array: showArray, words: showWords, wrong: showWrong })[name]();
}

function goTo(step) {
  const lines = recording().lines;
  state.step = Math.max(0, Math.min(lines.length - 1, step));
  state.entry = null;
  const made = madeBy(currentLine()).filter((one) => typeof one.ref === "number");
  const shown = made.find((one) => typeof one.right === "number") || made[0];
  state.pinned = shown ? { ...shown, frame: currentFrame(), line: currentLine() } : state.pinned;
  state.pointed = null;
  showAll();
}

function showAll() {
  const rec = recording(), steps = document.getElementById("steps");
  steps.max = rec.lines.length - 1;
  steps.value = state.step;
  steps.style.setProperty("--turn", `${(100 * rec.turn) / Math.max(rec.lines.length - 1, 1)}%`);
  document.getElementById("position").textContent = `line ${state.step + 1} of ${rec.lines.length.toLocaleString("en")} · ${currentFrame().back ? "backward" : "forward"}`;
  document.getElementById("moment-name").textContent = rec.label;
  document.getElementById("moment").value = state.moment;
  showCode();
  updateWay();
  const tab = currentTab();
  if (tab === "array" || tab === "wrong") ({ array: showArray, wrong: showWrong })[tab]();
}

function play() {
  const button = document.getElementById("play");
  if (playing) {
    clearInterval(playing);
    playing = null;
  } else {
    if (state.step === recording().lines.length - 1) goTo(0);
    playing = setInterval(() => (state.step < recording().lines.length - 1 ? goTo(state.step + 1) : play()), 600);
  }
  button.textContent = playing ? "stop" : "play";
}

/* The first line of the next call after this line, or of the one before it. */
function nextCall(direction) {
  const lines = recording().lines;
  let step = state.step;
  const here = lines[step].frame;
  while (step + direction >= 0 && step + direction < lines.length && lines[step].frame === here) step += direction;
  if (direction < 0) while (step > 0 && lines[step - 1].frame === lines[step].frame) step -= 1;
  return step;
}

function chooseMoment(which) {
  const share = state.step;
  state.moment = which;
  pictures.clear();
  shownSheet.frame = null;
  buildWay();
  if (currentTab() === "words") showWords();
  goTo(Math.min(share, recording().lines.length - 1));
}

function switchTheme() {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

const KEYS = {
  ArrowRight: () => goTo(state.step + 1), ArrowLeft: () => goTo(state.step - 1), ArrowDown: () => goTo(nextCall(1)), ArrowUp: () => goTo(nextCall(-1)),
  Home: () => goTo(0), End: () => goTo(recording().lines.length - 1), " ": play, b: () => goTo(recording().turn),
  a: () => showTab("array"), w: () => tabShown("words") && showTab("words"), r: () => tabShown("wrong") && showTab("wrong"),
  d: switchTheme, "?": () => document.getElementById("hints").showModal(),
};

function tabShown(name) {
  return !document.querySelector(`#tabs [data-tab=${name}]`).hidden;
}

function begin() {
  if (!recording().lines.length) {
    document.getElementById("lines").textContent = "No line of it could be followed: its source is not at hand, or it made no array.";
    return;
  }
  const moment = document.getElementById("moment");
  if (page.recordings.length > 1) {
    document.getElementById("moment-choice").hidden = false;
    moment.max = page.recordings.length - 1;
    moment.addEventListener("input", () => chooseMoment(Number(moment.value)));
  }
  document.querySelector("#tabs [data-tab=words]").hidden = page.kind !== "model";
  document.querySelector("#tabs [data-tab=wrong]").textContent = page.kind === "model" ? "Right and wrong" : "The checker";
  buildBeside();
  buildWay();
  watchNames();
  for (const tab of document.querySelectorAll("#tabs [role=tab]")) tab.addEventListener("click", () => showTab(tab.dataset.tab));
  for (const [id, action] of Object.entries({ "to-start": KEYS.Home, back: KEYS.ArrowLeft, forward: KEYS.ArrowRight, play, "to-backward": KEYS.b, theme: switchTheme, help: KEYS["?"] })) {
    document.getElementById(id).addEventListener("click", action);
  }
  document.getElementById("to-backward").disabled = recording().turn >= recording().lines.length;
  document.getElementById("steps").addEventListener("input", (event) => goTo(Number(event.target.value)));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("hints").open || event.target.matches("select")) return;
    if (event.key === " " && event.target.matches("button, summary")) return;
    if (event.target.matches("input[type=range]") && event.key.startsWith("Arrow")) return;
    if (!(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  document.getElementById("hints").addEventListener("close", () => document.activeElement.blur());    // the keys are the page's again
  document.querySelectorAll("#hints canvas.scale").forEach(drawScale);
  showTab("array");
  const failed = recording().lines.findIndex((line) => line.error);
  goTo(failed >= 0 ? failed : 0);
  if (!location.hash.includes("quiet")) document.getElementById("hints").showModal();
}

begin();
