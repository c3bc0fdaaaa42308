// Right and wrong: another backward compared with the page's own, and how far each line is off.

function buildAlternatives() {
  const choice = document.getElementById("alternative");
  if (!page.alternatives.length || page.kind !== "model") return;
  document.getElementById("alternative-choice").hidden = false;
  choice.replaceChildren(element("option", { value: "" }, "none"), ...page.alternatives.map((one, i) => element("option", { value: i }, one.title)));
  choice.addEventListener("change", () => chooseAlternative(choice.value === "" ? null : Number(choice.value)));
}

function chooseAlternative(which) {
  state.alternative = which;
  if (which !== null) state.moment = page.recordings.length - 1;
  document.getElementById("alternative").value = which === null ? "" : which;
  state.pinned = state.pointed = null;
  buildCalls();
  showTab("wrong");
  const wrong = other();
  if (!wrong) { showAll(); return; }
  const first = firstDiffering(wrong);
  if (first !== null) goTo(first);
  else showAll();
}

/* The first line that differs: where the change stands, if it has run. */
function firstDiffering(wrong) {
  const numbers = Object.keys(wrong.lines).map(Number).sort((a, b) => a - b);
  const there = numbers.find((number) => recording().lines[number].first <= wrong.line && wrong.line <= recording().lines[number].last && page.sheets[recording().frames[recording().lines[number].frame].sheet].file === wrong.file);
  return there !== undefined ? there : numbers.length ? numbers[0] : null;
}

function showWrong() {
  const panel = document.getElementById("wrong"), wrong = other(), parts = [], isModel = page.kind === "model";
  if (!isModel) parts.push(...checkerPanel(Math.max(240, panel.clientWidth - 8 || 330)));
  else if (!page.alternatives.length) parts.push(element("p", { class: "soft" }, "No other backward is on this page."));
  else parts.push(element("p", { class: "choices" }, ...page.alternatives.map((one, i) => element("button", { type: "button", class: state.alternative === i ? "chosen" : "", onclick: () => chooseAlternative(state.alternative === i ? null : i) }, one.title))));
  if (wrong) parts.push(...(isModel ? wrongBackward(wrong) : []), ...differingLines(wrong));
  else if (isModel && page.alternatives.length) parts.push(element("p", { class: "soft" }, "Choose a wrong backward: one small change of the source, as learners make it. Every line and array that it changes is marked, down to the word vectors."));
  panel.replaceChildren(...parts);
}

/* What was planted, what the checker says of it, and what training does with it. */
function wrongBackward(wrong) {
  const parts = [element("h3", {}, wrong.title), element("p", {}, wrong.about)], now = sheetLine(wrong);
  if (now) parts.push(element("p", { class: "soft" }, `${wrong.file}:${wrong.line}`), ...sentencesOf([{ kind: "right", html: now.trim() }, { kind: "wrong", html: wrong.edited.trim() }]));
  if (wrong.error) parts.push(element("p", { class: "bad" }, `It raised ${wrong.error}`));
  if (wrong.words.length) parts.push(element("h4", {}, "What the checker says about a small example with other numbers"), element("div", { class: "checker" }, ...sentencesOf(wrong.words)));
  if (wrong.cosine !== null && wrong.losses.length) parts.push(...whyItFalls(wrong));
  return parts;
}

function sheetLine(wrong) {
  const sheet = page.sheets.find((one) => one.file === wrong.file && one.first <= wrong.line && wrong.line < one.first + one.lines.length);
  return sheet ? sheet.lines[wrong.line - sheet.first] : null;
}

function whyItFalls(wrong) {
  const degrees = Math.round((Math.acos(Math.max(-1, Math.min(1, wrong.cosine))) * 180) / Math.PI);
  const first = wrong.losses[0], last = wrong.losses[wrong.losses.length - 1], right = page.descent[page.descent.length - 1];
  const falls = last < first, steps = page.descent.length - 1, stops = wrong.losses.length < page.descent.length;
  const words = [
    `Here the wrong gradient points ${degrees}° away from the right one (cos ${written(wrong.cosine, 3)})${falls && degrees < 90 ? ": less than 90°, so it still points downhill" : ""}.`,
    `In ${stops ? wrong.losses.length - 1 : steps} steps of gradient descent on this text the loss goes from ${written(first, 4)} to ${written(last, 4)}${stops ? ", and then it is no longer a number" : ""}; with the right gradient, in ${steps} steps, to ${written(right, 4)}.`,
    falls && last < right ? `Here the wrong one even ends lower: it is ${written(wrong.length, 2)} times as long as the right one, and on one short text such steps may go further. It is not the slope of this loss all the same.` : falls ? "That a loss falls does not mean that its gradient is right." : "",
  ];
  return [element("h4", {}, falls ? "Why the loss falls all the same" : "Here the loss does not fall"), curves(page.descent, wrong.losses), element("p", {}, words.join(" "))];
}

/* Two losses over the steps of gradient descent. */
function curves(right, wrong) {
  const wide = 300, high = 110, all = [...right, ...wrong].filter(Number.isFinite), top = Math.min(Math.max(...all), 1.5 * right[0] + 1e-9), steps = Math.max(right.length, wrong.length) - 1;
  const path = (losses) => losses.map((loss, i) => `${i ? "L" : "M"}${(34 + (i / steps) * (wide - 40)).toFixed(1)} ${(high - 18 - (Math.min(loss, top) / top) * (high - 30)).toFixed(1)}`).join(" ");
  const frame = element("div", { class: "curves" });
  frame.innerHTML = `<svg viewBox="0 0 ${wide} ${high}" role="img" aria-label="the loss over the steps, with the right and with the wrong gradient">
    <line x1="34" x2="${wide - 6}" y1="${high - 18}" y2="${high - 18}"/><text x="28" y="${high - 14}" text-anchor="end">0</text>
    <text x="28" y="18" text-anchor="end">${written(top, 2)}</text><text x="${wide - 6}" y="${high - 4}" text-anchor="end">step ${steps}</text>
    <path class="right" d="${path(right)}"/><path class="wrong" d="${path(wrong)}"/></svg>`;
  frame.append(element("p", { class: "soft" }, element("i", { class: "right" }), " right ", element("i", { class: "wrong" }), " wrong"));
  return frame;
}

/* The lines that differ, under the layers that they run in; without those that only hand on what another has made. */
function differingLines(wrong) {
  const rec = recording(), numbers = Object.keys(wrong.lines).map(Number).sort((a, b) => a - b), seen = new Set();
  const list = element("ol", { class: "differing" });
  let layer = null, count = 0;
  for (const number of numbers) {
    const line = rec.lines[number], frame = rec.frames[line.frame], made = madeBy(line).filter((one) => typeof one.right === "number" && !seen.has(`${one.ref} ${one.right}`));
    if (wrong.lines[number] !== null && !made.length) continue;
    made.forEach((one) => seen.add(`${one.ref} ${one.right}`));
    const at = placeOfCall(frame);
    if (at !== layer) list.append(element("li", { class: "layer" }, (layer = at)));
    const share = made.length ? Math.max(...made.map((one) => differenceShare(one.ref, one.right) ?? 0)) : Infinity;
    const strip = element("i", {});
    strip.style.width = `${Math.round(60 * Math.min(1, share))}px`;
    count += 1;
    list.append(element("li", {}, element("button", { type: "button", onclick: () => goTo(number) }, `${page.sheets[frame.sheet].title}:${line.first} `, element("b", {}, made.map((one) => one.name).join(", ") || "does not run")),
      element("span", { class: "strip" }, strip), element("span", { class: "soft" }, made.length ? differenceText(made[0].ref, made[0].right).replace("≠ by ", "") : "")));
  }
  return [element("h4", {}, count === 1 ? "One array differs" : `${count} lines give a different result, in the order in which they ran`), list];
}

/* The path in the model of the layer that a call belongs to, also of a backward */
function placeOfCall(frame) {
  for (let one = outermost(frame); one; one = one.parent === null ? null : recording().frames[one.parent]) if (one.at) return one.at.replace(/\.[A-Z]$|\.(gamma|beta|table)$/, "");
  return page.kind === "model" ? "the model" : page.sheets[frame.sheet].title;
}
