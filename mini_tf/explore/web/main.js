// Stepping, playing, choosing, and the keys.

let playing = null;
const PHONE = "(max-width: 819px)";                   // as in explore.css

function currentTab() {
  return document.querySelector('#tabs [aria-selected="true"]').dataset.tab;
}

/* Show a panel on the right; on a phone the lines are one of them. */
function showTab(name) {
  document.body.dataset.pane = name;
  for (const tab of document.querySelectorAll("#tabs [role=tab]")) {
    const chosen = tab.dataset.tab === name;
    tab.setAttribute("aria-selected", String(chosen));
    if (tab.dataset.tab !== "code") document.getElementById(tab.dataset.tab).hidden = !chosen;
  }
  if (name !== "code") redraw(document.getElementById(name), { block: showBlock, array: showArray, words: showWords, wrong: showWrong }[name]);
}

/* The map fills the page, or stands beside the lines. */
function showView(view) {
  const before = document.body.dataset.view;
  document.body.dataset.view = view;
  for (const button of document.querySelectorAll("#views button")) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  if (view === before) return;
  if (view === "lines") {
    goToStory(0);
    if (matchMedia(PHONE).matches) showTab("code");
    else if (currentTab() === "block") showTab("array");
  } else if (currentTab() === "code") {
    showTab("block");
  }
  buildMap();
  showAll();
}

function openLines(step) {
  stopMap();
  showView("lines");
  if (matchMedia(PHONE).matches) showTab("code");
  goTo(step);
}

function switchTree() {
  const tree = document.getElementById("call-tree"), button = document.getElementById("as-tree");
  tree.hidden = !tree.hidden;
  document.getElementById("map").hidden = !tree.hidden;
  button.setAttribute("aria-pressed", String(!tree.hidden));
  button.textContent = tree.hidden ? "as a list" : "as a map";
  fitMap();
}

function goTo(step) {
  const lines = recording().lines;
  state.step = Math.max(0, Math.min(lines.length - 1, step));
  state.entry = null;
  const made = madeBy(currentLine()).filter((one) => typeof one.ref === "number");
  const shown = made.find((one) => typeof one.right === "number") || made[0];
  state.pinned = shown ? { ...shown, frame: currentFrame(), line: currentLine() } : null;
  state.empty = shown ? "" : madeBy(currentLine()).map((one) => `${one.name}: ${one.ref ? one.ref.text : ""}`).join(", ");
  state.pointed = null;
  showAll();
}

function showAll() {
  const rec = recording(), steps = document.getElementById("steps");
  steps.max = rec.lines.length - 1;
  steps.value = state.step;
  steps.style.setProperty("--turn", `${(100 * rec.turn) / Math.max(rec.lines.length - 1, 1)}%`);
  document.getElementById("position").textContent = `line ${state.step + 1} of ${rec.lines.length.toLocaleString("en")} · ${currentFrame().back ? "backward" : "forward"}${turnOfLine()}`;
  document.getElementById("moment-name").textContent = rec.label;
  document.getElementById("moment-notes").replaceChildren(...(rec.notes || []).map((words) => element("p", { class: "note" }, words)));
  document.getElementById("moment").value = state.moment;
  document.getElementById("code").classList.toggle("backward", currentFrame().back);
  redraw(document.getElementById("code"), showCode);
  updateCalls();
  if (mapState.alternative === state.alternative) markMap();
  else buildMap();
  const tab = currentTab(), shows = { block: showBlock, array: showArray, wrong: showWrong };
  if (tab in shows) redraw(document.getElementById(tab), shows[tab]);
}

/* " · turn 2 of 5" of a line that runs several times in one call, as in a loop */
function turnOfLine() {
  const line = currentLine(), turns = currentFrame().lines.filter((one) => one.first === line.first);
  return turns.length > 1 ? ` · turn ${turns.indexOf(line) + 1} of ${turns.length}` : "";
}

/* True for a line that makes an array which no line before it has made: not for those that hand one on. */
function makesNew(line) {
  const rec = recording();
  if (!rec.fresh) {
    const seen = new Set();
    rec.fresh = rec.lines.map((one) => {
      const refs = one.made.map(([, ref]) => ref).filter((ref) => typeof ref === "number");
      const fresh = refs.some((ref) => !seen.has(ref)) || Boolean(one.error);
      refs.forEach((ref) => seen.add(ref));
      return fresh;
    });
    rec.fresh[rec.turn] = true;
  }
  return rec.fresh[line.number] || (other() && line.number in other().lines);
}

/* The next line in a direction; of those that make something new, if only they are wanted. */
function nextLine(direction) {
  const lines = recording().lines, all = !document.getElementById("only-new").checked;
  for (let step = state.step + direction; step >= 0 && step < lines.length; step += direction) if (all || makesNew(lines[step])) return step;
  return state.step;
}

function play() {
  const button = document.getElementById("play");
  if (playing) {
    clearInterval(playing);
    playing = null;
  } else {
    if (nextLine(1) === state.step) goTo(0);
    playing = setInterval(() => (nextLine(1) > state.step ? goTo(nextLine(1)) : play()), 600);
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
  if (which !== page.recordings.length - 1) state.alternative = null;     // other backwards were recorded at the end only
  document.getElementById("alternative").value = state.alternative === null ? "" : state.alternative;
  pictures.clear();
  shownSheet.frame = null;
  buildCalls();
  buildMap();
  if (currentTab() === "words") showWords();
  goTo(Math.min(share, recording().lines.length - 1));
  if (storyState.at) goToStory(storyState.at);
}

function switchTheme() {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

const KEYS = {
  ArrowRight: () => goTo(nextLine(1)), ArrowLeft: () => goTo(nextLine(-1)), ArrowDown: () => goTo(nextCall(1)), ArrowUp: () => goTo(nextCall(-1)),
  Home: () => goTo(0), End: () => goTo(recording().lines.length - 1), " ": play, b: () => openLines(recording().turn),
  m: () => showView("map"), l: () => showView("lines"), t: switchTree, k: () => showTab("block"),
  a: () => showTab("array"), w: () => tabShown("words") && showTab("words"), r: () => tabShown("wrong") && showTab("wrong"),
  d: switchTheme, "?": () => document.getElementById("hints").showModal(),
};

/* Keys that mean something else while the map is shown, or the story is told. */
const KEYS_OF_MAP = { " ": playMap, ArrowRight: () => goToStory(storyState.at + 1), ArrowLeft: () => goToStory(Math.max(1, storyState.at - 1)), Escape: () => (mapState.playing ? stopMap() : goToStory(0)) };

function actionOf(key) {
  return document.body.dataset.view === "map" && key in KEYS_OF_MAP ? KEYS_OF_MAP[key] : KEYS[key];
}

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
  document.addEventListener("click", (event) => {      // a button that was clicked does not keep the keys to itself
    const button = event.target.closest("button, summary");
    if (button && event.detail > 0) button.blur();
  });
  document.querySelector("#tabs [data-tab=words]").hidden = !recording().flow.length && !attentions().length;
  document.querySelector("#tabs [data-tab=wrong]").textContent = page.kind === "model" ? "Right and wrong" : "Yours and measured";
  buildAlternatives();
  buildCalls();
  watchNames();
  watchFormula();
  document.body.dataset.view = "map";
  for (const tab of document.querySelectorAll("#tabs [role=tab]")) tab.addEventListener("click", () => showTab(tab.dataset.tab));
  for (const [id, action] of Object.entries({ "to-start": KEYS.Home, back: KEYS.ArrowLeft, forward: KEYS.ArrowRight, play, "to-backward": KEYS.b, theme: switchTheme, help: KEYS["?"],
    "play-map": playMap, "as-tree": switchTree, "story-back": () => goToStory(storyState.at - 1), "story-end": () => goToStory(0),
    "story-on": () => goToStory(storyState.at === storySteps().length ? 0 : storyState.at + 1) })) {
    document.getElementById(id).addEventListener("click", action);
  }
  for (const button of document.querySelectorAll("#views button")) button.addEventListener("click", () => { stopMap(); showView(button.dataset.view); if (button.dataset.view === "lines" && mapState.chosen) goTo(firstLineOf(blockAt(mapState.chosen))); });
  addEventListener("resize", buildMap);
  addEventListener("hashchange", () => storyInAddress() !== storyState.at && goToStory(storyInAddress()));
  document.getElementById("to-backward").disabled = recording().turn >= recording().lines.length;
  document.getElementById("steps").addEventListener("input", (event) => goTo(Number(event.target.value)));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("hints").open || event.target.matches("select")) return;
    if (event.target.matches("input[type=range]") && /^(Arrow|Home|End)/.test(event.key)) return;
    if (event.target.matches("button, summary, input[type=checkbox]") && event.key === " ") return;
    if (event.key === "Escape" && playing) play();
    const action = actionOf(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  });
  document.getElementById("hints").addEventListener("close", () => document.activeElement.blur());    // the keys are the page's again
  document.querySelectorAll("#hints canvas.scale").forEach(drawScale);
  buildMap();
  const failed = recording().stopped ? recording().lines.findIndex((line) => line.error === recording().stopped) : -1;
  const marked = firstMarkedStep();
  showTab("block");
  goTo(failed >= 0 ? failed : marked ?? 0);
  if (failed >= 0 || marked !== null) showView("lines");
  document.querySelector(".line.suspect")?.scrollIntoView({ block: "nearest" });
  if (page.checker && page.checker.verdict !== "PASS") showTab("wrong");
  if (page.chosen !== undefined && page.alternatives.length) chooseAlternative(page.chosen);
  if (storyInAddress()) goToStory(storyInAddress());
}

begin();
