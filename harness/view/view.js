// The page of `lm-eval-rag view`. The index holds what the list and the filters need. A chunk holds whole questions,
// one per line, and is opened when one of them is shown or searched. The state is in the address (#id=...&outcome=...),
// so every view is a link. Texts of a run are set as text only, never as HTML.

const PER_PAGE = 50; // questions on a page of the list
const app = document.getElementById("app");
const parsed = new Promise((ready) => addEventListener("DOMContentLoaded", ready)); // then all chunks are there
let index, counts, starts, state, drawnQuestion;
let lastChunk = {};

// --- Elements

// An element with attributes, listeners (on...) and children: elements, texts, lists of these; nothing for false.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  const empty = [null, undefined, false, 0, ""];
  element.append(...children.flat(Infinity).filter((child) => !empty.includes(child)));
  return element;
}

function button(text, onclick, attributes = {}) {
  return make("button", { type: "button", onclick, ...attributes }, text);
}

function folded(title, ...content) {
  return make("details", {}, make("summary", {}, title), content);
}

function block(text) {
  return make("pre", {}, marked(text));
}

function pairs(entries, differs = () => false) {
  const value = (name, text) => make("dd", { class: differs(name) ? "differs" : null }, marked(text));
  return make("dl", {}, entries.map(([name, text]) => [make("dt", {}, name), value(name, text)]));
}

// A text in which golds (whole words) and search terms are marked: elements and texts, never HTML.
function marked(text, golds = []) {
  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const whole = (word) => `(?<![\\p{L}\\p{N}])${escaped(word)}(?![\\p{L}\\p{N}])`;
  const words = golds.filter((gold) => gold.trim()).map(whole);
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

function plain(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}

function rounded(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
}

function duration(seconds) {
  return seconds < 0.1 ? `${Number((1000 * seconds).toPrecision(2))} ms` : `${Number(seconds.toPrecision(3))} s`;
}

function isNarrow() {
  return matchMedia("(max-width: 760px)").matches;
}

// --- Data

async function unpack(id) {
  const text = document.getElementById(id).textContent;
  const slow = () => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : slow();
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function wholeOf(place) {
  const number = starts.findLastIndex((start) => start <= place);
  await parsed;
  if (lastChunk.number !== number) lastChunk = { number, text: await unpack(`chunk-${number}`) };
  return JSON.parse(lastChunk.text.split("\n")[place - starts[number]]);
}

function allRuns() {
  return index.runs.map((_, run) => run);
}

function severalTasks() {
  return counts.tasks.length > 1;
}

// --- State

function readState() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const runs = (given.runs || "").split(",").map(Number).filter((run) => given.runs && run in index.runs);
  const metric = Math.max(0, index.metrics.findIndex((one) => one.name === given.metric));
  const page = /^\d+$/.test(given.page) ? Number(given.page) : null; // null: the page with the shown question
  state = { q: "", task: "", outcome: "", class: "", slice: "", id: "", of: "", ...given, metric, page };
  state.runs = runs.length ? [...new Set(runs)] : allRuns();
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
  return address({ id: row.id, of: severalTasks() ? row.task : "", page: null });
}

// --- List

function drawList() {
  if (search.query !== state.q) {
    find(state.q); // draws the list when it has something
    if (state.q) return;
  }
  const places = [...index.rows.keys()].filter((place) => passes(index.rows[place], place));
  const shown = currentPlace(places);
  const list = document.querySelector(".list");
  const focused = list.contains(document.activeElement);
  drawCount(places.length);
  drawPage(places, shown);
  if (focused) list.querySelector("[aria-current]")?.focus({ preventScroll: true });
  drawQuestion(shown, places);
}

function drawCount(number) {
  const count = (value) => value.toLocaleString("en");
  const percent = Math.floor((100 * search.done) / starts.length);
  const running = search.found && search.done < starts.length ? `, searching: ${percent} %` : "";
  const text = `${count(number)} of ${count(index.rows.length)} questions${running}`;
  document.getElementById("count").textContent = text;
}

function drawPage(places, shown) {
  const pages = Math.max(1, Math.ceil(places.length / PER_PAGE));
  const page = Math.min(state.page ?? Math.max(0, Math.floor(places.indexOf(shown) / PER_PAGE)), pages - 1);
  const own = places.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
  const turn = (to) => {
    change({ page: to });
    document.querySelector(".list").scrollTop = 0;
  };
  const turner = (to, text) => button(text, () => turn(to), { disabled: to < 0 || to >= pages });
  const where = make("span", { class: "grow soft" }, `${page + 1} of ${pages}`);
  const turners = [turner(page - 1, "Previous page"), where, turner(page + 1, "Next page")];
  document.getElementById("rows").replaceChildren(...own.map((place) => listRow(place, place === shown)));
  document.getElementById("pages").replaceChildren(...(pages > 1 ? turners : []));
}

function listRow(place, current) {
  const row = index.rows[place];
  const marks = state.runs.map((run) => badgeOf(row, run, state.runs.length > 1 ? `${index.runs[run]}: ` : ""));
  const text = make("span", { class: "text" }, row.question);
  const below = make("span", { class: "marks" }, make("small", {}, row.id), marks);
  return make("li", {}, make("a", { href: linkTo(place), "aria-current": current ? "true" : null }, text, below));
}

// Bring the shown question into view within the list, without moving the page.
function scrollList() {
  const list = document.querySelector(".list");
  const current = list.querySelector("[aria-current]");
  const top = current ? current.getBoundingClientRect().top - list.getBoundingClientRect().top : 0;
  if (top < 0 || top + (current?.offsetHeight ?? 0) > list.clientHeight) list.scrollTop += top - list.clientHeight / 3;
}

function badgeOf(row, run, before = "") {
  const outcome = outcomeOf(row, run);
  return make("span", { class: `badge ${outcome}` }, `${before}${outcome}`);
}

// The chosen question; on a wide screen without one, the first of the list.
function currentPlace(places) {
  const place = placeOf(state.id, state.of);
  if (place >= 0) return place;
  return isNarrow() || !places.length ? null : places[0];
}

// --- Start

function draw() {
  drawFilters();
  drawList();
}

function listParts() {
  return [
    make("p", { id: "count", class: "soft", role: "status" }),
    make("ol", { id: "rows" }),
    make("div", { id: "pages", class: "pages" }),
  ];
}

async function start() {
  index = JSON.parse(await unpack("index"));
  let next = 0;
  starts = index.chunks.map((lines) => (next += lines) - lines);
  counts = countFilters();
  readState();
  app.replaceChildren(
    make("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() }),
    make("div", { class: "panes" },
      make("nav", { class: "list", "aria-label": "Questions" }, listParts()),
      make("article", { class: "question", "aria-label": "Question" })));
  addEventListener("hashchange", () => {
    readState();
    draw();
  });
  draw();
  app.setAttribute("aria-busy", "false");
}

start().catch((error) => {
  const text = `The page could not be opened: ${error.message}. It needs a browser of 2023 or later.`;
  app.replaceChildren(make("p", { role: "alert" }, text));
});
