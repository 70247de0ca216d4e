"use strict";
// One question: its runs side by side, with answers, scores, rules, passages and steps. The rest is in view.js; both files
// are one script of the page. Texts of a run are set as text only, never as HTML.

const HEADLINE = 5; // metrics that are shown without a click; the index has them first
const LONG = 600; // characters; a longer passage is cut until it is asked for

async function drawQuestion(place, places) {
  const key = JSON.stringify([place, state.runs, state.metric, search.found && state.q]);
  const pane = document.querySelector(".question");
  document.querySelector(".panes").classList.toggle("reading", Boolean(state.id) && place !== null);
  if (drawnQuestion !== key) {
    drawnQuestion = key;
    if (place === null) { pane.replaceChildren(make("p", { class: "soft" }, "No question passes these filters.")); return; }
    const whole = await wholeOf(place);
    if (drawnQuestion !== key) return;
    pane.replaceChildren(make("div", { class: "bar" }), ...questionParts(whole, index.rows[place]));
    pane.dataset.id = whole.id;
    if (state.id && matchMedia("(max-width: 760px)").matches) scrollTo(0, 0);
  }
  pane.querySelector(".bar")?.replaceChildren(...barParts(place, places));
}

function barParts(place, places) {
  const at = places.indexOf(place);
  const step = (to, text) => make("button", { type: "button", disabled: to in places ? null : "", onclick: () => { location.hash = address({ ...idOf(places[to]), page: null }); } }, text);
  const idOf = (one) => ({ id: index.rows[one].id, of: severalTasks() ? index.rows[one].task : "" });
  const back = make("button", { type: "button", class: "back", onclick: () => { location.hash = address({ id: "", of: "" }) ; } }, "All questions");
  const outside = at < 0 && make("span", { class: "soft" }, "This question does not pass the filters.");
  return [back, step(at - 1, "Previous"), step(at + 1, "Next"), outside || "", make("span", { class: "grow" }), make("a", { href: linkTo(place) }, "Link to this question")];
}

function questionParts(whole, row) {
  const golds = whole.golds.map((gold) => [make("span", { class: "badge gold" }, gold), " "]);
  const fields = Object.entries(whole.fields);
  return [
    make("h2", {}, marked(whole.question)),
    make("p", { class: "golds" }, whole.golds.length === 1 ? "Gold answer: " : "Gold answers: ", golds.length ? golds : "none"),
    make("p", { class: "soft" }, severalTasks() ? `${row.task}, ` : "", `id ${whole.id}`),
    fields.length > 0 && folded(`Fields of the question (${fields.length})`, pairs(fields)),
    overview(whole, row),
    changed(whole),
    make("div", { class: "columns" }, state.runs.filter((run) => whole.runs[run]).map((run) => runPart(whole, row, run))),
  ].filter(Boolean);
}

// The answers in one list, for narrow screens, where the runs are below each other.
function overview(whole, row) {
  const answers = state.runs.filter((run) => whole.runs[run]).map((run) => [make("b", {}, index.runs[run]), ": ", whole.runs[run].answer || "(empty answer)", " ", badgeOf(row, run)]);
  return answers.length > 1 && make("ul", { class: "overview" }, answers.map((parts) => make("li", {}, parts)));
}

// What differs between the passages of the runs that are shown.
function changed(whole) {
  const runs = state.runs.filter((run) => whole.runs[run]?.passages);
  if (runs.length < 2) return null;
  const common = whole.runs[runs[0]].passages.filter((one) => runs.every((run) => hasPassage(whole.runs[run], one))).length;
  const only = runs.map((run) => `only in ${index.runs[run]}: ${whole.runs[run].passages.filter((one) => isOnly(whole, run, one)).length}`);
  return make("p", { class: "soft" }, `Passages in all of these runs: ${common}; ${only.join("; ")}.`);
}

// Methods may cut one page differently, so that a passage is the same only if id and text are.
function hasPassage(own, passage) {
  return own.passages.some((one) => one.id === passage.id && one.text === passage.text);
}

function isOnly(whole, run, passage) {
  const others = state.runs.filter((other) => other !== run && whole.runs[other]?.passages);
  return others.length > 0 && !others.some((other) => hasPassage(whole.runs[other], passage));
}

function runPart(whole, row, run) {
  const own = whole.runs[run];
  const classes = row.runs[run].classes.map((name) => [" ", make("span", { class: "badge" }, name)]);
  return make("section", { class: "run", "aria-label": index.runs[run] },
    make("h3", {}, index.runs[run]), badgeOf(row, run), classes,
    make("p", { class: "answer" }, own.answer ? marked(own.answer, whole.golds) : make("span", { class: "soft" }, "(empty answer)")),
    own.failure && make("p", {}, make("b", {}, "Failed: "), own.failure),
    scoreParts(whole, run),
    own.judge && folded(`Judge: ${own.judge.correct === null ? "no verdict" : `correct ${own.judge.correct}`} (${own.judge.rule})`, pairs(Object.entries(own.judge).map(plain))),
    Object.entries(own.notes).map(([name, value]) => folded(name, make("pre", {}, marked(plain([name, value])[1])))),
    own.rules && rulesPart(own.rules), own.passages && passagesPart(whole, run), stepsPart(own, run), costPart(own.costs));
}

function scoreParts(whole, run) {
  const names = Object.keys(whole.runs[run].scores);
  const first = index.metrics.slice(0, HEADLINE).map((metric) => metric.name).filter((name) => names.includes(name));
  const rows = (shown) => pairs(shown.map((name) => [name, shortNumber(whole.runs[run].scores[name])]), (name) => state.runs.some((other) => whole.runs[other] && whole.runs[other].scores[name] !== whole.runs[run].scores[name]));
  return names.length > 0 && [rows(first), names.length > first.length && folded(`All scores (${names.length})`, rows(names))];
}

function rulesPart(rules) {
  const text = (rule) => `[Entity1, ${rule.body}, Entity2] leads to [Entity1, ${rule.head}, Entity2]`;
  const lines = rules.map((rule) => make("li", {}, marked(text(rule)), " ", make("small", {}, `confidence ${shortNumber(rule.confidence)}, support ${rule.support} of ${rule.body_support}`)));
  return [make("h4", {}, `Rules (${rules.length})`), lines.length ? make("ul", {}, lines) : make("p", { class: "soft" }, "No rule matched.")];
}

function passagesPart(whole, run) {
  const passages = whole.runs[run].passages;
  const golds = passages.filter((passage) => passage.gold).length;
  const title = `Passages (${passages.length}), ${golds} ${golds === 1 ? "states" : "state"} a gold answer`;
  return [make("h4", {}, title), make("ol", { class: "passages" }, passages.map((passage, i) => passagePart(whole, run, passage, i + 1)))];
}

function passagePart(whole, run, passage, rank) {
  const text = whole.texts[passage.text];
  const head = [make("b", {}, `${rank}.`), make("span", {}, passage.id), passage.score !== null && make("span", {}, `score ${shortNumber(passage.score)}`)];
  if (passage.gold) head.push(make("span", { class: "badge gold" }, "states a gold answer"));
  if (isOnly(whole, run, passage)) head.push(make("span", { class: "badge" }, "only here"));
  const body = make("div", { class: text.length > LONG ? "body cut" : "body" }, marked(text, passage.gold ? whole.golds : []));
  const more = make("button", { type: "button", class: "link", onclick: () => { body.classList.remove("cut"); more.remove(); } }, "Show all of it");
  const title = [passage.title, passage.source].filter(Boolean).join(" · ");
  return make("li", { class: passage.gold ? "gold" : null }, make("div", { class: "head" }, head), title && make("b", {}, marked(title)), body, text.length > LONG && more);
}

function stepsPart(own, run) {
  if (own.steps) {
    const steps = own.steps.map((step, i) => folded([`${i + 1}. ${step.ask} `, make("small", {}, stepNumbers(step))], stepBody(step)));
    return [make("h4", {}, `Steps (${steps.length})`), steps];
  }
  const why = index.traced[run] ? "The trace files have no steps of this question." : "This run has no trace file, so only the last prompt is known.";
  return [own.prompt && folded("Prompt", make("pre", {}, marked(own.prompt))), folded(`Replies (${own.replies.length})`, own.replies.map((reply) => make("pre", {}, marked(reply)))), make("p", { class: "soft" }, why)];
}

function stepNumbers(step) {
  const numbers = [step.found !== undefined && `${step.found} passages`, step.prompt_tokens && `${step.prompt_tokens} + ${step.completion_tokens || 0} tokens`, step.seconds && duration(step.seconds)];
  return [...numbers, ...(step.finishes || []).filter((finish) => finish && finish !== "stop"), step.journalled && "from the journal"].filter(Boolean).join(", ");
}

function stepBody(step) {
  const block = (name, text) => text && [make("small", {}, name), make("pre", {}, marked(text))];
  const dropped = step.dropped_passages && make("p", {}, `${step.dropped_passages} passages did not fit into the prompt.`);
  return [block("request", step.request), dropped, block("thinking", step.thinking), make("small", {}, "reply"), make("pre", {}, marked(step.reply || "(empty)"))];
}

function costPart(costs) {
  const entries = Object.entries(costs);
  return entries.length > 0 && folded("Cost", pairs(entries.map(([name, value]) => [name.replaceAll("_", " "), name === "seconds" ? duration(value) : shortNumber(value)])));
}

// --- Small parts

function folded(title, ...content) {
  return make("details", {}, make("summary", {}, title), content);
}

function pairs(entries, differs = () => false) {
  return make("dl", {}, entries.map(([name, value]) => [make("dt", {}, name), make("dd", { class: differs(name) ? "differs" : null }, marked(String(value)))]));
}

function plain([name, value]) {
  return [name, typeof value === "string" ? value : JSON.stringify(value, null, 1)];
}

function shortNumber(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
}

function duration(seconds) {
  return seconds < 0.1 ? `${Number((1000 * seconds).toPrecision(2))} ms` : `${Number(seconds.toPrecision(3))} s`;
}

// A text in which golds (whole words) and search terms are marked: nodes and strings, never HTML.
function marked(text, golds = []) {
  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const words = golds.filter((gold) => gold.trim()).map((gold) => `(?<![\\p{L}\\p{N}])${escaped(gold)}(?![\\p{L}\\p{N}])`);
  const terms = termsOf(state.q).map(escaped);
  if (!words.length && !terms.length) return text;
  const pattern = new RegExp(`(${words.join("|") || "(?!)"})|(${terms.join("|") || "(?!)"})`, "giu");
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push(text.slice(end, match.index), make("mark", { class: match[1] ? null : "hit" }, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}
