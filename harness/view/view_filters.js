"use strict";
// The filters and the search. The page's script is view_filters.js, view_question.js and view.js, in this order.

const RIGHT_FROM = 0.5; // a score of this or more is right (less, for a metric where lower is better)
const KEPT = 300e6; // characters of searchable texts that are kept for the next search
const REDRAW = 300; // milliseconds between two drawings of the list during a search
const WAIT = 150; // milliseconds without a key until a search starts
const searchable = new Map(); // number of a chunk -> its lines in lower case, without keys
const search = { query: null, found: null, done: 0 }; // found: places of rows, null without a query
let kept = 0;
let typing;

// --- Right and wrong

function outcomeOf(row, run) {
  const score = row.runs[run]?.scores[state.metric];
  if (!row.runs[run]) return "not asked";
  if (score === null || score === undefined) return "unscored";
  return score >= RIGHT_FROM === index.metrics[state.metric].higher ? "right" : "wrong";
}

function outcomeOptions() {
  if (state.runs.length === 1) {
    return [["", "all answers"], ["wrong", "wrong"], ["right", "right"], ["unscored", "unscored"]];
  }
  return [
    ["", "all answers"],
    ["wrong", "wrong in some run"],
    ["all-wrong", "wrong in every run"],
    ["right", "right in every run"],
    ["differ", "right in some, wrong in others"],
    ...state.runs.map((run) => [`only-right-${run}`, `only ${index.runs[run]} is right`]),
    ...state.runs.map((run) => [`only-wrong-${run}`, `only ${index.runs[run]} is wrong`]),
    ["unscored", "unscored in some run"],
  ];
}

const OUTCOMES = {
  wrong: (outcomes) => outcomes.includes("wrong"),
  "all-wrong": (outcomes) => outcomes.every((one) => one === "wrong"),
  right: (outcomes) => outcomes.every((one) => one === "right"),
  differ: (outcomes) => outcomes.includes("right") && outcomes.includes("wrong"),
  unscored: (outcomes) => outcomes.includes("unscored"),
};

function hasOutcome(row) {
  const [, only, run] = /^only-(right|wrong)-(\d+)$/.exec(state.outcome) || [];
  if (!only) {
    const outcomes = state.runs.map((one) => outcomeOf(row, one)).filter((one) => one !== "not asked");
    return !Object.hasOwn(OUTCOMES, state.outcome) || OUTCOMES[state.outcome](outcomes);
  }
  const others = state.runs.filter((one) => one !== Number(run));
  const opposite = only === "right" ? "wrong" : "right";
  return outcomeOf(row, Number(run)) === only && others.every((one) => outcomeOf(row, one) === opposite);
}

function passes(row, place) {
  const [key, value] = state.slice.split(/=(.*)/s);
  return (
    (!search.found || search.found.has(place)) &&
    (!state.task || row.task === state.task) &&
    (!state.slice || row.slices[key] === value) &&
    (!state.class || state.runs.some((run) => row.runs[run]?.classes.includes(state.class))) &&
    hasOutcome(row)
  );
}

// --- The form

function countsOf(valuesOf) {
  const numbers = new Map();
  for (const row of index.rows) {
    for (const value of new Set(valuesOf(row))) numbers.set(value, (numbers.get(value) || 0) + 1);
  }
  return [...numbers].sort((a, b) => b[1] - a[1]);
}

// The values of the filters never change, so they are counted once.
function countFilters() {
  const keys = countsOf((row) => Object.keys(row.slices)).map(([key]) => key);
  return {
    slices: keys.map((key) => [key, countsOf((row) => (key in row.slices ? [row.slices[key]] : []))]),
    classes: countsOf((row) => row.runs.flatMap((one) => one?.classes || [])),
    tasks: countsOf((row) => [row.task]),
  };
}

// Groups are [title, options], options are [value, text].
function choice(label, name, options, groups = []) {
  const option = ([value, text]) => make("option", { value, selected: state[name] === value }, text);
  const members = groups.map(([title, own]) => make("optgroup", { label: title }, own.map(option)));
  const onchange = (event) => change({ [name]: event.target.value });
  return make("label", {}, label, make("select", { onchange }, options.map(option), members));
}

function valueChoice(label, name, all, values) {
  const options = values.map(([value, number]) => [value, `${value} (${number})`]);
  return values.length > 0 && choice(label, name, [["", all], ...options]);
}

function sliceChoice() {
  const options = (key, values) => values.map(([value, number]) => [`${key}=${value}`, `${value} (${number})`]);
  const groups = counts.slices.map(([key, values]) => [key, options(key, values)]);
  return groups.length > 0 && choice("Slice", "slice", [["", "all slices"]], groups);
}

function metricChoice() {
  const option = (metric, place) => make("option", { value: place, selected: state.metric === place }, metric.name);
  const onchange = (event) => change({ metric: Number(event.target.value) });
  return make("label", {}, "Right or wrong by", make("select", { onchange }, index.metrics.map(option)));
}

function runBoxes() {
  const toggle = (run) => {
    const runs = allRuns().filter((one) => state.runs.includes(one) !== (one === run));
    change({ runs: runs.length ? runs : [run], outcome: "" });
  };
  const box = (run) => {
    const input = make("input", { type: "checkbox", checked: state.runs.includes(run), onchange: () => toggle(run) });
    return make("label", {}, input, index.runs[run]);
  };
  return make("fieldset", {}, make("legend", {}, "Runs"), make("div", {}, allRuns().map(box)));
}

function reset() {
  change({ q: "", task: "", outcome: "", class: "", slice: "", runs: allRuns() });
}

function drawFilters() {
  const form = document.querySelector(".filters");
  const inputs = () => [...form.querySelectorAll("input, select, button")];
  const focused = inputs().indexOf(document.activeElement);
  const words = { type: "search", value: state.q, placeholder: 'words, or "a phrase"', oninput: typed };
  const parts = [
    make("label", { class: "search" }, "Search in everything", make("input", words)),
    choice("Answers", "outcome", outcomeOptions()),
    metricChoice(),
    valueChoice("Class", "class", "all classes", counts.classes),
    sliceChoice(),
    severalTasks() && valueChoice("Task", "task", "all tasks", counts.tasks),
    index.runs.length > 1 && runBoxes(),
    button("Reset", reset),
  ];
  form.replaceChildren(...parts.filter(Boolean));
  inputs()[focused]?.focus();
}

// --- Search

function typed(event) {
  clearTimeout(typing);
  const q = event.target.value;
  typing = setTimeout(() => {
    history.replaceState(null, "", address({ q, page: null, id: "", of: "" }));
    readState();
    drawList();
  }, WAIT);
}

function termsOf(query) {
  return [...query.toLowerCase().matchAll(/"([^"]+)"|(\S+)/g)].map(([, phrase, word]) => phrase || word);
}

// A quotation mark within a value is written \", so only keys look like "key":.
async function searchableText(number) {
  if (searchable.has(number)) return searchable.get(number);
  await parsed;
  const text = (await unpack(`chunk-${number}`)).replace(/"\w+":/g, "").toLowerCase();
  kept += text.length;
  if (kept <= KEPT) searchable.set(number, text);
  return text;
}

function linesWith(text, terms) {
  const written = terms.map((term) => JSON.stringify(term).slice(1, -1)); // as in the lines
  const has = (line) => written.every((term) => line.includes(term));
  return has(text) ? [...text.split("\n").entries()].filter(([, line]) => has(line)).map(([place]) => place) : [];
}

// Looks into one chunk after the other and shows what it has, until another query takes its place.
async function find(query) {
  const terms = termsOf(query);
  Object.assign(search, { query, found: terms.length ? new Set() : null, done: 0 });
  let drawn = performance.now();
  for (let number = 0; terms.length && number < starts.length; number++) {
    const text = await searchableText(number);
    if (search.query !== query) return;
    for (const line of linesWith(text, terms)) search.found.add(starts[number] + line);
    search.done = number + 1;
    if (performance.now() - drawn > REDRAW) {
      drawList();
      await new Promise((go) => setTimeout(go)); // the browser may paint and take input
      drawn = performance.now();
    }
  }
  search.done = starts.length;
  drawList();
}
