// The page of `lm-eval-rag view`. The index holds what the list and the filters need. A chunk holds whole questions, one
// per line, and is opened when one of them is shown or searched. The state is in the address (#id=...&outcome=...), so
// every view is a link. Texts of a run are set as text only, never as HTML.

const PER_PAGE = 50; // questions on a page of the list
const KEPT = 300e6; // characters of searchable texts that are kept for the next search
const RIGHT_FROM = 0.5; // a score of this or more is right (less, for a metric where lower is better)
const app = document.getElementById("app");
const searchable = new Map(); // number of a chunk -> its lines in lower case, without keys
const search = { query: null, found: null, done: 0 }; // found: places of rows, null without a query
const parsed = new Promise((ready) => addEventListener("DOMContentLoaded", ready)); // all chunks are there
let index, counts, starts, state, drawnQuestion;
let lastChunk = {}, kept = 0;

// --- Elements, data

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

async function unpack(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function chunkText(number) {
  await parsed;
  if (lastChunk.number !== number) lastChunk = { number, text: await unpack(`chunk-${number}`) };
  return lastChunk.text;
}

async function wholeOf(place) {
  const number = starts.findLastIndex((start) => start <= place);
  return JSON.parse((await chunkText(number)).split("\n")[place - starts[number]]);
}

// --- State

function readState() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const runs = (given.runs || "").split(",").map(Number).filter((run) => given.runs && run in index.runs);
  const metric = Math.max(0, index.metrics.findIndex((one) => one.name === given.metric));
  const page = /^\d+$/.test(given.page) ? Number(given.page) : null; // null: the page with the shown question
  state = { q: "", task: "", outcome: "", class: "", slice: "", id: "", of: "", ...given, metric, page };
  state.runs = runs.length ? [...new Set(runs)] : index.runs.map((_, run) => run);
}

function address(changes) {
  const next = { ...state, ...changes };
  const all = next.runs.length === index.runs.length;
  const metric = next.metric ? index.metrics[next.metric].name : "";
  const values = { ...next, metric, page: next.page ?? "", runs: all ? "" : next.runs.join(",") };
  return "#" + new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
}

// A shown question that does not pass the new filters makes room for the first one that does.
function change(changes) {
  history.replaceState(null, "", address({ page: null, ...changes }));
  readState();
  const place = placeOf(state.id, state.of);
  if (place >= 0 && !passes(index.rows[place], place)) history.replaceState(null, "", address({ id: "", of: "" }));
  readState();
  draw();
}

function placeOf(id, task) {
  return id ? index.rows.findIndex((row) => row.id === id && (!task || row.task === task)) : -1;
}

function linkTo(place) {
  const row = index.rows[place];
  return address({ id: row.id, of: severalTasks() ? row.task : "" });
}

function severalTasks() {
  return counts.tasks.length > 1;
}

// --- Filters

function outcomeOf(row, run) {
  const score = row.runs[run]?.scores[state.metric];
  if (!row.runs[run]) return "not asked";
  if (score === null || score === undefined) return "unscored";
  return score >= RIGHT_FROM === index.metrics[state.metric].higher ? "right" : "wrong";
}

function outcomeOptions() {
  const single = state.runs.length === 1;
  const options = [["", "all answers"], ["wrong", single ? "wrong" : "wrong in some run"]];
  if (single) return [...options, ["right", "right"], ["unscored", "unscored"]];
  options.push(["all-wrong", "wrong in every run"], ["right", "right in every run"], ["differ", "right in some, wrong in others"]);
  for (const run of state.runs) options.push([`only-right-${run}`, `only ${index.runs[run]} is right`]);
  for (const run of state.runs) options.push([`only-wrong-${run}`, `only ${index.runs[run]} is wrong`]);
  return [...options, ["unscored", "unscored in some run"]];
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
    return !(state.outcome in OUTCOMES) || OUTCOMES[state.outcome](outcomes);
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

function countsOf(valuesOf) {
  const numbers = new Map();
  for (const row of index.rows) for (const value of new Set(valuesOf(row))) numbers.set(value, (numbers.get(value) || 0) + 1);
  return [...numbers].sort((a, b) => b[1] - a[1]);
}

function choice(label, name, options, groups = []) {
  const option = ([value, text]) => make("option", { value, selected: state[name] === value ? "" : null }, text);
  const parts = groups.map(([title, members]) => make("optgroup", { label: title }, members.map(option)));
  const select = make("select", { onchange: (event) => change({ [name]: event.target.value }) }, options.map(option), parts);
  return make("label", {}, label, select);
}

function valueChoice(label, name, all, values) {
  return values.length > 0 && choice(label, name, [["", all], ...values.map(([value, n]) => [value, `${value} (${n})`])]);
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

function sliceChoice() {
  const groups = counts.slices.map(([key, values]) => [key, values.map(([value, n]) => [`${key}=${value}`, `${value} (${n})`])]);
  return groups.length > 0 && choice("Slice", "slice", [["", "all slices"]], groups);
}

function metricChoice() {
  const options = index.metrics.map((one, place) => make("option", { value: place, selected: state.metric === place ? "" : null }, one.name));
  return make("label", {}, "Right or wrong by", make("select", { onchange: (event) => change({ metric: Number(event.target.value) }) }, options));
}

function runBox(run) {
  const toggle = () => {
    const runs = index.runs.map((_, one) => one).filter((one) => state.runs.includes(one) !== (one === run));
    change({ runs: runs.length ? runs : [run], outcome: "" });
  };
  const box = make("input", { type: "checkbox", checked: state.runs.includes(run) ? "" : null, onchange: toggle });
  return make("label", {}, box, index.runs[run]);
}

function drawFilters() {
  const focused = document.activeElement?.closest(".filters") ? [...document.querySelectorAll(".filters :is(input, select, button)")].indexOf(document.activeElement) : -1;
  const text = make("input", { type: "search", value: state.q, placeholder: 'words, or "a phrase"', oninput: typed });
  const runs = index.runs.length > 1 && make("fieldset", {}, make("legend", {}, "Runs"), make("div", {}, index.runs.map((_, run) => runBox(run))));
  const form = document.querySelector(".filters");
  form.replaceChildren(
    make("label", { class: "search" }, "Search in everything", text),
    choice("Answers", "outcome", outcomeOptions()), metricChoice(),
    valueChoice("Class", "class", "all classes", counts.classes) || "",
    sliceChoice() || "",
    (severalTasks() && valueChoice("Task", "task", "all tasks", counts.tasks)) || "",
    runs || "",
    make("button", { type: "button", onclick: () => change({ q: "", task: "", outcome: "", class: "", slice: "", runs: index.runs.map((_, run) => run) }) }, "Reset"),
  );
  if (focused >= 0) form.querySelectorAll("input, select, button")[focused]?.focus();
}

// --- Search

let typing;
function typed(event) {
  clearTimeout(typing);
  const q = event.target.value;
  typing = setTimeout(() => { history.replaceState(null, "", address({ q, page: null, id: "", of: "" })); readState(); drawList(); }, 150);
}

function termsOf(query) {
  return [...query.toLowerCase().matchAll(/"([^"]+)"|(\S+)/g)].map(([, phrase, word]) => phrase || word);
}

// A quotation mark within a value is written \", so only keys look like "key":.
async function searchableText(number) {
  if (searchable.has(number)) return searchable.get(number);
  await parsed;
  const text = (await unpack(`chunk-${number}`)).replace(/"\w+":/g, "").toLowerCase();
  if ((kept += text.length) <= KEPT) searchable.set(number, text);
  return text;
}

function linesWith(text, terms) {
  const written = terms.map((term) => JSON.stringify(term).slice(1, -1)); // as in the lines
  const has = (line) => written.every((term) => line.includes(term));
  return has(text) ? [...text.split("\n").entries()].filter(([, line]) => has(line)).map(([place]) => place) : [];
}

async function find(query) {
  const terms = termsOf(query);
  Object.assign(search, { query, found: terms.length ? new Set() : null, done: 0 });
  let drawn = performance.now();
  for (let number = 0; terms.length && number < starts.length; number++) {
    const text = await searchableText(number);
    if (search.query !== query) return;
    for (const line of linesWith(text, terms)) search.found.add(starts[number] + line);
    search.done = number + 1;
    if (performance.now() - drawn > 300) {
      drawList();
      await new Promise((go) => setTimeout(go)); // let the browser paint and take input
      drawn = performance.now();
    }
  }
  search.done = starts.length;
  drawList();
}

// --- List

function drawList() {
  if (search.query !== state.q) { find(state.q); if (state.q) return; }
  const places = [...index.rows.keys()].filter((place) => passes(index.rows[place], place));
  const pages = Math.max(1, Math.ceil(places.length / PER_PAGE));
  const panes = document.querySelector(".panes");
  const inside = panes.querySelector(".list").contains(document.activeElement);
  const shown = currentPlace(places);
  const page = Math.min(state.page ?? Math.max(0, Math.floor(places.indexOf(shown) / PER_PAGE)), pages - 1);
  const running = search.found && search.done < starts.length ? `, searching: ${Math.floor((100 * search.done) / starts.length)} %` : "";
  document.getElementById("count").textContent = `${places.length.toLocaleString("en")} of ${index.rows.length.toLocaleString("en")} questions${running}`;
  const turn = (to, text) => make("button", { type: "button", disabled: to < 0 || to >= pages ? "" : null, onclick: () => { change({ page: to }); panes.querySelector(".list").scrollTop = 0; } }, text);
  document.getElementById("rows").replaceChildren(...places.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map((place) => listRow(place, place === shown)));
  document.getElementById("pages").replaceChildren(...(pages > 1 ? [turn(page - 1, "Previous page"), make("span", { class: "grow soft" }, `${page + 1} of ${pages}`), turn(page + 1, "Next page")] : []));
  if (inside) panes.querySelector("[aria-current]")?.focus({ preventScroll: true });
  drawQuestion(shown, places);
}

function listRow(place, current) {
  const row = index.rows[place];
  const marks = state.runs.map((run) => badgeOf(row, run, state.runs.length > 1 ? `${index.runs[run]}: ` : ""));
  const text = make("span", { class: "text" }, row.question);
  return make("li", {}, make("a", { href: linkTo(place), "aria-current": current ? "true" : null }, text, make("span", { class: "marks" }, make("small", {}, row.id), marks)));
}

function badgeOf(row, run, before = "") {
  const outcome = outcomeOf(row, run);
  return make("span", { class: `badge ${outcome}` }, `${before}${outcome}`);
}

function currentPlace(places) {
  const place = placeOf(state.id, state.of);
  const wide = !matchMedia("(max-width: 760px)").matches;
  return place >= 0 ? place : wide && places.length ? places[0] : null;
}

// --- Start

function draw() {
  drawFilters();
  drawList();
}

async function start() {
  index = JSON.parse(await unpack("index"));
  let start = 0;
  starts = index.chunks.map((lines) => (start += lines) - lines);
  counts = countFilters();
  readState();
  app.replaceChildren(
    make("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() }),
    make("div", { class: "panes" },
      make("nav", { class: "list", id: "questions", "aria-label": "Questions" }, make("p", { id: "count", class: "soft", role: "status" }), make("ol", { id: "rows" }), make("div", { id: "pages", class: "pages" })),
      make("article", { class: "question", "aria-label": "Question" })));
  addEventListener("hashchange", () => { readState(); draw(); });
  draw();
  app.setAttribute("aria-busy", "false");
}

start().catch((error) => {
  app.replaceChildren(make("p", { role: "alert" }, `The page could not be opened: ${error.message}. It needs a browser of 2023 or later.`));
});
