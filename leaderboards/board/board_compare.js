// Two entries, question by question.

const SHOWS = [
  ["", "all questions"],
  ["first", "only the first is right"],
  ["second", "only the second is right"],
  ["wrong", "both are wrong"],
  ["right", "both are right"],
];
const STEP = 50;
let questionsShown = STEP, comparedBefore = "";

const nameOf = (slug) => currentRows().find((row) => row.slug === slug)?.name;

function drawTray(task) {
  const names = state.compare.map(nameOf);
  byId("tray").hidden = names.length === 0;
  const open = () => { byId("comparison").scrollIntoView({ behavior: "smooth" }); byId("comparison").focus({ preventScroll: true }); };
  const clear = () => { state.compare = []; state.show = ""; draw(); };
  const text = names.length === 1 ? [make("b", {}, shortName(names[0] ?? state.compare[0])), " · tick one more entry to compare"] : [make("b", {}, shortName(names[0] ?? "")), " and ", make("b", {}, shortName(names[1] ?? ""))];
  byId("tray").replaceChildren(make("span", {}, ...text), names.length === 2 && button("Compare", open, { className: "primary" }), button("Clear", clear));
}

async function drawComparison(task) {
  const panel = byId("comparison");
  const slugs = [...state.compare];
  panel.hidden = slugs.length < 2;
  if (panel.hidden) return;
  const lacking = slugs.filter((slug) => !nameOf(slug));
  if (lacking.length) return panel.replaceChildren(make("p", {}, `No entry on ${task.task}: ${lacking.join(", ")}.`));
  const key = [task.task, ...slugs].join();
  if (comparedBefore !== key) {
    questionsShown = STEP;
    panel.replaceChildren(make("p", { className: "soft" }, "Loading …"));
  }
  comparedBefore = key;
  const files = slugs.map((slug) => `${slug}.${task.task}`);
  const needed = files.map((file) => load("entry", file, file));
  if (!task.members.length) needed.push(load("questions", task.task, `${task.task}.questions`));
  try {
    await Promise.all(needed);
  } catch (error) {
    panel.replaceChildren(make("p", { className: "flag" }, error.message));
    return;
  }
  if (comparedBefore === key) panel.replaceChildren(...comparisonParts(task, slugs, files.map((file) => loaded.entry[file])));
}

function comparisonParts(task, slugs, data) {
  const names = slugs.map(nameOf);
  const head = [make("h2", {}, "Comparison"), make("p", { className: "versus" }, make("b", { className: "a" }, names[0]), make("span", { className: "soft" }, " and "), make("b", { className: "b" }, names[1])), make("p", {}, testText(task, slugs, names, data))];
  if (task.members.length) return [...head, make("p", { className: "soft" }, "Choose a single task above to read the answers.")];
  const questions = loaded.questions[task.task];
  const right = (i) => data.map((one) => one.right[i] === "1");
  const kinds = { first: (a, b) => a && !b, second: (a, b) => b && !a, wrong: (a, b) => !a && !b, right: (a, b) => a && b };
  const places = Object.fromEntries(SHOWS.map(([show]) => [show, questions.map((_, i) => i).filter((i) => !show || kinds[show](...right(i)))]));
  const chosen = places[state.show] ?? places[""];
  const options = SHOWS.map(([show, text]) => make("option", { value: show, selected: show === state.show }, `${text} (${places[show].length.toLocaleString("en")})`));
  const select = make("select", { id: "show" }, ...options);
  select.onchange = () => { state.show = select.value; questionsShown = STEP; writeAddress(); drawComparison(task).then(() => byId("show").focus()); };
  const bar = make("div", { className: "shares", role: "img", ariaLabel: SHOWS.slice(1).map(([show, text]) => `${text}: ${places[show].length}`).join(", ") });
  for (const show of ["right", "first", "second", "wrong"]) {
    const part = make("span", { className: show, title: `${SHOWS.find(([one]) => one === show)[1]}: ${places[show].length}` }, places[show].length ? places[show].length.toLocaleString("en") : "");
    part.style.flexGrow = places[show].length;
    if (places[show].length) bar.append(part);
  }
  const legend = make("p", { className: "legend" }, ...[["right", "both right"], ["first", "only the first right"], ["second", "only the second right"], ["wrong", "both wrong"]].map(([show, text]) => make("span", {}, make("i", { className: show }), text)));
  const items = chosen.slice(0, questionsShown).map((i) => question(questions[i], data.map((one) => one.answers[i]), right(i), names));
  const more = () => { questionsShown += STEP; drawComparison(task); };
  const rest = chosen.length - items.length;
  return [...head, bar, legend, make("label", {}, "Questions ", select), make("ol", { className: "questions" }, ...items), rest > 0 && button(`Show ${Math.min(STEP, rest)} more of ${count(rest, "question")}`, more)].filter(Boolean);
}

function testText(task, slugs, names, data) {
  const [first, second] = slugs;
  const turned = data[1].pairs[first];
  const pair = data[0].pairs[second] ?? turned;
  if (!pair) return "One of the two is not ranked, so the two are not tested.";
  const [left, other] = turned ? [names[1], names[0]] : names;
  const [mean, low, high] = pair.length > 2 ? pair : [pair[0]];
  const p = pair.at(-1);
  const verdict = p < 0.05 ? "The difference is significant" : "The difference is not significant: these questions cannot tell the two apart";
  return `${task.metric}, ${left} minus ${other}: ${withSign(mean)}${interval(low, high)}. ${verdict} (${pValue(p)}, paired test with Holm's correction over all pairs).`;
}

function question([id, text, golds], answers, right, names) {
  const answer = (i) => make("div", { className: `answer ${right[i] ? "yes" : "no"}` },
    make("span", { className: `who ${"ab"[i]}` }, names[i]),
    make("span", { className: "what" }, answers[i] || make("i", {}, "empty")),
    make("span", { className: "mark" }, right[i] ? "✓ right" : "✗ wrong"));
  return make("li", {}, make("p", { className: "asked" }, text, " ", make("small", {}, id)), make("p", { className: "gold" }, "Gold: ", golds.join(" | ") || "none"), make("div", { className: "answers" }, answer(0), answer(1)));
}
