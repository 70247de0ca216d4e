// One question: its runs side by side, with answers, scores, rules, passages and steps.

const HEADLINE = 5; // metrics that are shown without a click; the index has them first
const LONG = 600; // characters; a longer passage is cut until it is asked for

async function drawQuestion(place, places) {
  const key = JSON.stringify([place, state.runs, state.metric, search.found && state.q]);
  const pane = document.querySelector(".question");
  document.querySelector(".panes").classList.toggle("reading", Boolean(state.id) && place !== null);
  if (drawnQuestion !== key) {
    drawnQuestion = key;
    const whole = place === null ? null : await wholeOf(place);
    if (drawnQuestion !== key) return; // another question was chosen meanwhile
    if (whole === null) pane.replaceChildren(make("p", { class: "soft" }, "No question passes these filters."));
    else pane.replaceChildren(make("div", { class: "bar" }), ...questionParts(whole, index.rows[place]));
    pane.dataset.id = whole?.id ?? "";
    if (isNarrow()) scrollTo(0, 0);
    else scrollList();
  }
  pane.querySelector(".bar")?.replaceChildren(...barParts(place, places));
}

function barParts(place, places) {
  const at = places.indexOf(place);
  const goTo = (link) => () => (location.hash = link);
  const step = (to, text) =>
    to in places ? button(text, goTo(linkTo(places[to]))) : button(text, () => {}, { disabled: true });
  const page = at < 0 ? null : Math.floor(at / PER_PAGE); // the page of the list to go back to
  return [
    button("All questions", goTo(address({ id: "", of: "", page })), { class: "back" }),
    step(at - 1, "Previous"),
    step(at + 1, "Next"),
    at < 0 ? make("span", { class: "soft" }, "This question does not pass the filters.") : "",
    make("span", { class: "grow" }),
    make("a", { href: linkTo(place) }, "Link to this question"),
  ];
}

function questionParts(whole, row) {
  const golds = whole.golds.map((gold) => [make("span", { class: "badge gold" }, gold), " "]);
  const fields = Object.entries(whole.fields);
  const runs = state.runs.filter((run) => whole.runs[run]);
  const parts = [
    make("h2", {}, marked(whole.question)),
    make("p", { class: "golds" }, `Gold answer${golds.length === 1 ? "" : "s"}: `, golds.length ? golds : "none"),
    make("p", { class: "soft" }, severalTasks() ? `${row.task}, ` : "", `id ${whole.id}`),
    fields.length > 0 && folded(`Fields of the question (${fields.length})`, pairs(fields)),
    runs.length > 1 && overview(whole, row, runs),
    changed(whole),
    make("div", { class: "columns" }, runs.map((run) => runPart(whole, row, run))),
  ];
  return parts.filter(Boolean);
}

// The answers in one list, for narrow screens, where the runs are below each other.
function overview(whole, row, runs) {
  const parts = (run) => [": ", whole.runs[run].answer || "(empty answer)", " ", badgeOf(row, run)];
  const line = (run) => make("li", {}, make("b", {}, index.runs[run]), parts(run));
  return make("ul", { class: "overview" }, runs.map(line));
}

// --- What differs between runs

function changed(whole) {
  const runs = state.runs.filter((run) => whole.runs[run]?.passages);
  if (runs.length < 2) return null;
  const count = (run, test) => whole.runs[run].passages.filter(test).length;
  const common = count(runs[0], (passage) => runs.every((run) => hasPassage(whole.runs[run], passage)));
  const only = runs.map((run) => `only in ${index.runs[run]}: ${count(run, (one) => isOnly(whole, run, one))}`);
  return make("p", { class: "soft" }, `Passages in all of these runs: ${common}; ${only.join("; ")}.`);
}

// Methods may cut one page differently, so a passage is the same only if id and text are.
function hasPassage(own, passage) {
  return own.passages.some((one) => one.id === passage.id && one.text === passage.text);
}

function isOnly(whole, run, passage) {
  const others = state.runs.filter((other) => other !== run && whole.runs[other]?.passages);
  return others.length > 0 && !others.some((other) => hasPassage(whole.runs[other], passage));
}

function scoreDiffers(whole, run, name) {
  const score = whole.runs[run].scores[name];
  return state.runs.some((other) => whole.runs[other] && whole.runs[other].scores[name] !== score);
}

// --- One run

function runPart(whole, row, run) {
  const own = whole.runs[run];
  const classes = row.runs[run].classes.map((name) => [" ", make("span", { class: "badge" }, name)]);
  const empty = make("span", { class: "soft" }, "(empty answer)");
  const notes = Object.entries(own.notes).map(([name, value]) => folded(name, block(plain(value))));
  return make("section", { class: "run", "aria-label": index.runs[run] },
    make("h3", {}, index.runs[run]), badgeOf(row, run), classes,
    make("p", { class: "answer" }, own.answer ? marked(own.answer, whole.golds) : empty),
    own.failure && make("p", {}, make("b", {}, "Failed: "), own.failure),
    scoreParts(whole, run),
    own.judge && judgePart(own.judge),
    notes,
    own.rules && rulesPart(own.rules),
    own.passages && passagesPart(whole, run),
    own.steps ? stepsPart(own.steps) : promptPart(own, run),
    costPart(own.costs));
}

function scoreParts(whole, run) {
  const { scores } = whole.runs[run];
  const names = Object.keys(scores);
  const first = index.metrics.slice(0, HEADLINE).map((metric) => metric.name).filter((name) => names.includes(name));
  const differs = (name) => scoreDiffers(whole, run, name);
  const list = (shown) => pairs(shown.map((name) => [name, rounded(scores[name])]), differs);
  const others = names.length > first.length && folded(`All scores (${names.length})`, list(names));
  return names.length > 0 && [list(first), others];
}

function judgePart(judge) {
  const verdict = judge.correct === null ? "no verdict" : `correct ${judge.correct}`;
  const entries = Object.entries(judge).map(([name, value]) => [name, plain(value)]);
  return folded(`Judge: ${verdict} (${judge.rule})`, pairs(entries));
}

function ruleText(rule) {
  const step = (relation, i) =>
    relation.startsWith("^")
      ? `[Entity${i + 2}, ${relation.slice(1)}, Entity${i + 1}]`
      : `[Entity${i + 1}, ${relation}, Entity${i + 2}]`;
  const path = rule.path || [rule.inverse ? `^${rule.body}` : rule.body];
  const lead = path.length > 1 ? "lead" : "leads";
  return `${path.map(step).join(" and ")} ${lead} to [Entity1, ${rule.head}, Entity${path.length + 1}]`;
}

function rulesPart(rules) {
  const support = (rule) => `confidence ${rounded(rule.confidence)}, support ${rule.support} of ${rule.body_support}`;
  const counted = (rule) => rule.confidence !== undefined && make("small", {}, support(rule));
  const lines = rules.map((rule) => make("li", {}, marked(ruleText(rule)), " ", counted(rule)));
  const none = make("p", { class: "soft" }, "No rule matched.");
  return [make("h4", {}, `Rules (${rules.length})`), lines.length ? make("ul", {}, lines) : none];
}

function passagesPart(whole, run) {
  const { passages } = whole.runs[run];
  const golds = passages.filter((passage) => passage.gold).length;
  const title = `Passages (${passages.length}), ${golds} ${golds === 1 ? "states" : "state"} a gold answer`;
  const items = passages.map((passage, i) => passagePart(whole, run, passage, i + 1));
  return [make("h4", {}, title), make("ol", { class: "passages" }, items)];
}

function passagePart(whole, run, passage, rank) {
  const text = whole.texts[passage.text];
  const long = text.length > LONG;
  const title = [passage.title, passage.source].filter(Boolean).join(" · ");
  const body = make("div", { class: long ? "body cut" : "body" }, marked(text, passage.gold ? whole.golds : []));
  const showAll = () => {
    body.classList.remove("cut");
    more.remove();
  };
  const more = long && button("Show all of it", showAll, { class: "link" });
  const head = make("div", { class: "head" },
    make("b", {}, `${rank}.`),
    make("span", {}, passage.id),
    passage.score !== null && make("span", {}, `score ${rounded(passage.score)}`),
    passage.gold && make("span", { class: "badge gold" }, "states a gold answer"),
    isOnly(whole, run, passage) && make("span", { class: "badge" }, "only here"));
  return make("li", { class: passage.gold ? "gold" : null }, head, title && make("b", {}, marked(title)), body, more);
}

// --- Steps

function stepsPart(steps) {
  const title = (step, i) => [`${i + 1}. ${step.ask} `, make("small", {}, stepNumbers(step))];
  return [make("h4", {}, `Steps (${steps.length})`), steps.map((step, i) => folded(title(step, i), stepBody(step)))];
}

function stepNumbers(step) {
  const numbers = [
    step.found !== undefined && `${step.found} passages`,
    step.prompt_tokens && `${step.prompt_tokens} + ${step.completion_tokens || 0} tokens`,
    step.seconds && duration(step.seconds),
    ...(step.finishes || []).filter((finish) => finish !== "stop"),
    step.journalled && "from the journal",
  ];
  return numbers.filter(Boolean).join(", ");
}

function stepBody(step) {
  const titled = (name, text) => text && [make("small", {}, name), block(text)];
  const dropped = step.dropped_passages;
  return [
    titled("request", step.request),
    dropped && make("p", {}, `${dropped} passages did not fit into the prompt.`),
    titled("thinking", step.thinking),
    titled("reply", step.reply || "(empty)"),
  ];
}

function promptPart(own, run) {
  if (!own.prompt && !own.replies.length) return false; // a sample of a submission has neither
  const untraced = "This run has no trace file, so only the last prompt is known.";
  const why = index.traced[run] ? "The trace files have no steps of this question." : untraced;
  const replies = folded(`Replies (${own.replies.length})`, own.replies.map(block));
  return [own.prompt && folded("Prompt", block(own.prompt)), replies, make("p", { class: "soft" }, why)];
}

function costPart(costs) {
  const text = (name, value) => (name === "seconds" ? duration(value) : rounded(value));
  const entries = Object.entries(costs).map(([name, value]) => [name.replaceAll("_", " "), text(name, value)]);
  return entries.length > 0 && folded("Cost", pairs(entries));
}
