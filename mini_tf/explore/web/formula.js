// What a sheet's docstring says: its formulas, whose letters are names of the code; and lines of the code that are folded.

/* A sheet's formulas by themselves; null if there is none. */
function formulasOf(sheet) {
  if (!sheet.formulas.length) return null;
  const formulas = element("div", { class: "formulas" });
  formulas.innerHTML = sheet.formulas.join("");
  return formulas;
}

/* The formulas above the code, and what else the docstring says. */
function buildFormula(sheet) {
  const formulas = formulasOf(sheet) || element("div", {}), seen = new Set();
  for (const letter of formulas.querySelectorAll("[data-name]")) {    // the first of each can be reached by key
    if (!seen.has(letter.dataset.name)) letter.setAttribute("tabindex", "0");
    seen.add(letter.dataset.name);
  }
  const parts = [];
  if (sheet.formulas.length) parts.push(element("h3", {}, "formula"), formulas);
  if (sheet.text) parts.push(element("details", { open: !sheet.formulas.length }, element("summary", {}, "what it does"), element("pre", {}, sheet.text)));
  document.getElementById("formula").replaceChildren(...parts);
}

/* Mark the formulas of what the current line makes, as the line itself is marked; they stay in sight while lines scroll. */
function markFormulas(line) {
  const formulas = document.querySelector("#formula .formulas"), stays = formulas && getComputedStyle(formulas).position === "sticky";
  const top = document.getElementById("stack").offsetHeight - 8, below = top + (stays ? formulas.offsetHeight : 0);
  if (formulas) formulas.style.top = `${top}px`;
  document.getElementById("code").style.scrollPaddingTop = `${below}px`;
  for (const math of document.querySelectorAll("#formula math[data-makes]")) {
    const makes = line.made.some(([name]) => name === math.dataset.makes);
    math.parentElement.classList.toggle("now", makes);
    if (makes) math.scrollIntoView({ block: "nearest" });
  }
}

/* What a letter stands for in the calls of the sheet: up to the current line, or else later on. */
function lookUpLetter(name) {
  const frames = family(shownSheet.frame), now = currentFrame();
  const found = (step) => [...(frames.includes(now) ? [now] : []), ...frames].map((frame) => lookUp(name, frame, step)).find((made) => made && typeof made.ref === "number");
  return found(state.step) || found(Infinity) || null;
}

function watchFormula() {
  const formula = document.getElementById("formula");
  const enter = (event) => {
    const letter = event.target.closest("[data-name]");
    if (!letter) return;
    light(letter.dataset.name);
    point(lookUpLetter(letter.dataset.name));
  };
  const leave = (event) => {
    if (!event.target.closest("[data-name]")) return;
    light(null);
    point(null);
  };
  const choose = (event) => {
    const letter = event.target.closest("[data-name]"), found = letter && lookUpLetter(letter.dataset.name);
    if (found) pin(found);
  };
  formula.addEventListener("mouseover", enter);
  formula.addEventListener("focusin", enter);
  formula.addEventListener("mouseout", leave);
  formula.addEventListener("focusout", leave);
  formula.addEventListener("click", choose);
  formula.addEventListener("keydown", (event) => event.key === "Enter" && choose(event));
}

// Folded lines ---------------------------------------------------------------------------------------------------------

const unfolded = new Set();                            // "sheet first line" of the folds that have been opened

/* Fold lines of the sheet that has been built; each fold opens by its button. */
function foldLines(sheet, number) {
  for (const fold of sheet.folds) {
    const key = `${number} ${fold.first}`, rows = [];
    for (let line = fold.first; line <= fold.last; line++) rows.push(shownSheet.rows.get(line));
    const head = shownSheet.rows.get(fold.head), count = fold.last - fold.first + 1;
    const button = element("button", { type: "button", class: "unfold", title: fold.short ? "the whole line" : null });
    const show = () => {
      const open = unfolded.has(key);
      button.textContent = fold.short ? "⋯" : `⋯ ${count} line${count > 1 ? "s" : ""}: ${fold.says}`;
      button.setAttribute("aria-expanded", String(open));
      rows.forEach((row) => { row.row.hidden = !open && row !== head; });
      if (head) head.source.innerHTML = head.html = open ? head.whole : fold.short;
    };
    button.addEventListener("click", () => {
      if (!unfolded.delete(key)) unfolded.add(key);
      show();
    });
    if (head) {
      head.whole = head.html;
      button.setAttribute("aria-label", "type hints");
      head.source.after(button);
    } else rows[0].row.before(element("div", { class: "line folded", role: "row" }, element("span", { class: "number" }), button));
    rows.forEach((row) => { row.open = () => { unfolded.add(key); show(); }; });
    show();
  }
}

/* Open the fold that the current line is in. */
function showFolded(row) {
  if (row && row.row.hidden) row.open();
}
