"use strict";
// The table of the board. All texts of entries are set as text, never as HTML.

const board = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const state = { task: board.tasks[0].task, method: "", size: "", search: "", published: true, canary: true, sort: "", down: true, compare: [] };
const loaded = { entry: {}, pairs: {}, questions: {} };

function boardData([kind, name, value]) { loaded[kind][name] = value; }

function load(kind, name, file) {
  if (loaded[kind][name]) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `data/${file}.js`;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`data/${file}.js cannot be read`));
    document.head.append(script);
  });
}

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of ["task", "method", "size", "search", "sort"]) state[key] = given.get(key) ?? (key === "task" ? state.task : "");
  if (!board.tasks.some((task) => task.task === state.task)) state.task = board.tasks[0].task;
  for (const key of ["published", "canary", "down"]) state[key] = given.get(key) !== "0";
  state.compare = (given.get("compare") ?? "").split(",").filter(Boolean).slice(0, 2);
}

function writeAddress() {
  const address = new URLSearchParams();
  for (const key of ["task", "method", "size", "search", "sort"]) if (state[key]) address.set(key, state[key]);
  for (const key of ["published", "canary", "down"]) if (!state[key]) address.set(key, "0");
  if (state.compare.length) address.set("compare", state.compare.join(","));
  history.replaceState(null, "", `#${address}`);
}

const current = () => board.tasks.find((task) => task.task === state.task);

function hasSize(row) {
  if (!state.size) return true;
  if (state.size === "none") return !row.generator;
  if (!row.generator) return false;
  if (state.size === "unknown") return row.parameters === null;
  const [low, high] = state.size.split("-").map(Number);
  return row.parameters !== null && row.parameters >= low && row.parameters < high;
}

function isShown(row) {
  if (row.kind === "published" && !state.published) return false;
  if (row.kind === "canary" && !state.canary) return false;
  const text = [row.name, row.team, row.method, row.generator, row.retriever].join(" ").toLowerCase();
  if (!text.includes(state.search.toLowerCase())) return false;
  if (row.kind === "published" || row.kind === "canary") return !state.method && !state.size;
  return (!state.method || row.method === state.method) && hasSize(row);
}

function columns(task) {
  const label = (name) => ({ crag_hallucination: "hallucination", crag_missing: "abstention" })[name] ?? name;
  const scores = task.metrics.map(([name, higher]) => ({ key: name, label: label(name), higher, value: (row) => row.scores[name]?.[0], cell: (row) => scoreCell(row.scores[name], name) }));
  const costs = ["tokens", "seconds", "cost"].filter((name) => task.rows.some((row) => name in row.cost));
  return [
    ...scores,
    ...costs.map((name) => ({ key: name, label: name, higher: false, value: (row) => row.cost[name], cell: (row) => (name in row.cost ? [Number(row.cost[name].toPrecision(3)).toLocaleString("en")] : []) })),
    { key: "gain", label: `${task.metric} gain over`, higher: true, value: (row) => Object.values(row.gains)[0]?.[0], cell: gainCell },
  ];
}

function scoreCell(score, metric) {
  if (!score) return [];
  const [mean, low, high] = score;
  const from = metric === "crag_score" ? -100 : 0;
  const place = (value) => `${(100 * (value - from)) / (100 - from)}%`;
  const track = make("span", { className: "track" });
  track.style.display = "block";
  if (low !== null) {
    const bar = make("i");
    bar.style.left = place(low);
    bar.style.width = `calc(${place(high)} - ${place(low)})`;
    track.append(bar);
  }
  const mark = make("b");
  mark.style.left = place(mean);
  track.append(mark);
  const text = make("span", { title: low === null ? "" : `95 % interval ${low.toFixed(1)} to ${high.toFixed(1)}` }, mean.toFixed(1), track);
  return [text];
}

function gainCell(row) {
  return Object.entries(row.gains).map(([other, [mean, , , p]]) => {
    const short = other.startsWith("standard_rag") ? "standard_rag" : "constant";
    const test = p < 0.05 ? "significant" : "not significant";
    return make("div", { title: `${other}: p ${p}, ${test}` }, `${mean > 0 ? "+" : ""}${mean.toFixed(1)} ${short}`, make("small", {}, p < 0.05 ? "" : ", n.s."));
  });
}

function sorted(rows, task) {
  const column = columns(task).find((one) => one.key === state.sort);
  if (!column) return rows;
  const worst = column.higher ? -Infinity : Infinity;
  const sign = (column.higher ? -1 : 1) * (state.down ? 1 : -1);
  const value = (row) => column.value(row) ?? (state.down ? worst : -worst);
  return [...rows].sort((a, b) => sign * (value(a) - value(b)) || a.name.localeCompare(b.name));
}

function headCell(column) {
  const chosen = state.sort === column.key;
  const button = make("button", { type: "button" }, column.label + (chosen ? (state.down ? " ▾" : " ▴") : ""));
  button.onclick = () => { state.down = chosen ? !state.down : true; state.sort = column.key; draw(); };
  const cell = make("th", { scope: "col", className: column.key === "gain" ? "gain" : "number" }, button);
  cell.setAttribute("aria-sort", chosen ? (state.down === column.higher ? "descending" : "ascending") : "none");
  return cell;
}

function compareBox(row) {
  if (!row.slug) return [];
  const input = make("input", { type: "checkbox", checked: state.compare.includes(row.slug), ariaLabel: `Compare ${row.name}`, title: "Compare two entries" });
  input.onchange = () => {
    state.compare = input.checked ? [...state.compare, row.slug].slice(-2) : state.compare.filter((slug) => slug !== row.slug);
    draw();
  };
  return [input, " "];
}

function bodyRow(row, task, even) {
  const line = make("tr", { className: `${row.kind}${row.rank ? " tie" : ""}${even ? " even" : ""}` });
  const rank = make("td", { className: "rank" });
  rank.dataset.label = "rank";
  if (row.rank) {
    const [place, best, worst] = row.rank;
    rank.append(make("span", {}, String(place), best === worst ? "" : make("small", {}, ` [${best}–${worst}]`)));
  }
  const name = row.slug ? make("a", { href: `entries/${row.slug}.html#${task.task}` }, row.name) : row.name;
  const parts = [row.team, row.method, row.generator, row.retriever].filter(Boolean).join(" · ");
  const head = make("th", { scope: "row" }, ...compareBox(row), name, make("small", {}, parts || row.note || "no system"), ...row.flags.map((flag) => make("small", { className: "flag" }, flag)));
  line.append(rank, head);
  for (const column of columns(task)) {
    const cell = make("td", { className: column.key === "gain" ? "gain" : "number" }, ...column.cell(row));
    cell.dataset.label = column.label;
    line.append(cell);
  }
  return line;
}

function drawTable(task) {
  const rows = sorted(task.rows.filter(isShown), task);
  const rank = make("th", { scope: "col" });
  const back = make("button", { type: "button" }, "rank");
  back.onclick = () => { state.sort = ""; draw(); };
  rank.append(back);
  byId("table").tHead.replaceChildren(make("tr", {}, rank, make("th", { scope: "col" }, "entry"), ...columns(task).map(headCell)));
  const groups = [...new Set(rows.filter((row) => row.rank).map((row) => row.rank[0]))];
  byId("table").tBodies[0].replaceChildren(...rows.map((row) => bodyRow(row, task, row.rank && groups.indexOf(row.rank[0]) % 2)));
  byId("about").textContent = `${task.questions.toLocaleString("en")} questions, version ${task.version}, data ${task.data}. Ranked by ${task.metric}. ${rows.length} of ${task.rows.length} rows. Tick two entries to compare them.`;
}

function drawFront(task) {
  const svg = byId("front");
  const node = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const points = task.rows.filter((row) => row.rank && "tokens" in row.cost).map((row) => ({ row, tokens: row.cost.tokens, score: row.scores[task.metric][0] }));
  svg.replaceChildren();
  svg.parentElement.hidden = points.length === 0;
  if (!points.length) return;
  const most = Math.max(...points.map((point) => Math.log10(1 + point.tokens)), 1);
  const low = Math.min(0, ...points.map((point) => point.score));
  const high = Math.max(...points.map((point) => point.score), low + 10);
  const x = (tokens) => 48 + (560 * Math.log10(1 + tokens)) / most;
  const y = (score) => 280 - (236 * (score - low)) / (high - low);
  svg.append(node("line", { class: "axis", x1: 48, x2: 620, y1: 280, y2: 280 }), node("line", { class: "axis", x1: 48, x2: 48, y1: 24, y2: 280 }));
  for (let power = 0; power <= most; power += 1) {
    const tokens = power ? 10 ** power : 0;
    svg.append(node("text", { x: x(tokens), y: 298, "text-anchor": "middle" }, tokens.toLocaleString("en")));
  }
  svg.append(node("text", { x: 334, y: 316, "text-anchor": "middle" }, "tokens a question (logarithmic)"));
  for (const score of [low, (low + high) / 2, high]) svg.append(node("text", { x: 42, y: y(score) + 4, "text-anchor": "end" }, score.toFixed(0)));
  svg.append(node("text", { x: 54, y: 12 }, task.metric));
  const ordered = [...points].sort((a, b) => a.tokens - b.tokens || b.score - a.score);
  let best = -Infinity;
  const front = ordered.filter((point) => point.score > best && (best = point.score, true));
  svg.append(node("polyline", { class: "front", points: front.map((point) => `${x(point.tokens)},${y(point.score)}`).join(" ") }));
  for (const point of points) {
    const dot = node("circle", { cx: x(point.tokens), cy: y(point.score), r: 5 });
    dot.append(node("title", {}, `${point.row.name}: ${point.score.toFixed(1)}, ${point.tokens.toFixed(0)} tokens`));
    svg.append(dot);
    if (front.includes(point)) {
      const right = x(point.tokens) > 440;
      const name = point.row.name.length > 30 ? `${point.row.name.slice(0, 29)}…` : point.row.name;
      svg.append(node("text", { class: "label", x: x(point.tokens) + (right ? -9 : 9), y: y(point.score) - 8, "text-anchor": right ? "end" : "start" }, name));
    }
  }
}

function drawGroups() {
  byId("groups").replaceChildren(...board.groups.flatMap((group) => {
    const rows = group.rows.map(([name, slug, mean, low, high]) => make("tr", {}, make("th", { scope: "row" }, make("a", { href: `entries/${slug}.html` }, name)), make("td", { className: "number" }, low === null ? mean.toFixed(1) : `${mean.toFixed(1)} [${low.toFixed(1)}, ${high.toFixed(1)}]`)));
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "entry"), make("th", { scope: "col", className: "number" }, "mean over tasks")));
    return [make("figcaption", {}, `${group.group}: mean over its tasks, of entries that have all of them`), make("table", {}, head, make("tbody", {}, ...rows))];
  }));
}

async function drawComparison(task) {
  const panel = byId("comparison");
  const [first, second] = state.compare;
  panel.hidden = !second;
  if (!second) return;
  const name = (slug) => task.rows.find((row) => row.slug === slug)?.name;
  const lacking = [first, second].filter((slug) => !name(slug));
  if (lacking.length) { panel.replaceChildren(make("p", {}, `No entry with predictions for ${task.task}: ${lacking.join(", ")}.`)); return; }
  panel.replaceChildren(make("p", { className: "soft" }, "Loading …"));
  try {
    await Promise.all([load("pairs", task.task, `${task.task}.pairs`), load("questions", task.task, `${task.task}.questions`), load("entry", first, first), load("entry", second, second)]);
  } catch (error) { panel.replaceChildren(make("p", { className: "flag" }, error.message)); return; }
  if (state.compare.join() !== [first, second].join()) return;
  const pair = loaded.pairs[task.task].find(([a, b]) => (a === first && b === second) || (a === second && b === first));
  const ours = loaded.entry[first][task.task], theirs = loaded.entry[second][task.task];
  const questions = loaded.questions[task.task];
  const changed = Object.keys(questions).filter((id) => ours[id][1] !== theirs[id][1]);
  const wins = changed.filter((id) => ours[id][1] > theirs[id][1]).length;
  const lines = changed.slice(0, 100).map((id) => make("tr", {}, make("th", { scope: "row" }, questions[id][0], make("small", {}, `gold: ${questions[id][1].join(" | ")}`)), ...[ours, theirs].map((all) => make("td", {}, `${all[id][1] ? "✓" : "✗"} ${all[id][0] || "(empty)"}`))));
  const test = pair ? `${task.metric}, ${name(pair[0])} minus ${name(pair[1])}: ${pair[2].toFixed(1)}${pair[3] === null ? "" : ` [${pair[3].toFixed(1)}, ${pair[4].toFixed(1)}]`}, p ${pair[5]} after Holm's correction: ${pair[5] < 0.05 ? "significant" : "not significant"}.` : "One of the two is not ranked, so the two are not tested.";
  panel.replaceChildren(
    make("h2", {}, `${name(first)} and ${name(second)}`),
    make("p", {}, test),
    make("p", { className: "soft" }, `Exact matches differ on ${changed.length} questions: ${wins} are right in the first alone, ${changed.length - wins} in the second alone.${changed.length > 100 ? " The first 100 are shown." : ""}`),
    make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Questions that differ" }, make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "question"), make("th", { scope: "col" }, name(first)), make("th", { scope: "col" }, name(second)))), make("tbody", {}, ...lines))),
  );
}

function draw() {
  const task = current();
  const methods = [...new Set(task.rows.map((row) => row.method).filter(Boolean))].sort();
  if (!methods.includes(state.method)) state.method = "";
  byId("task").replaceChildren(...board.tasks.map((one) => make("option", { value: one.task, selected: one.task === state.task }, one.task)));
  byId("method").replaceChildren(make("option", { value: "" }, "any"), ...methods.map((name) => make("option", { value: name, selected: name === state.method }, name)));
  byId("size").value = state.size;
  if (byId("search").value !== state.search) byId("search").value = state.search;
  for (const key of ["published", "canary"]) byId(key).checked = state[key];
  writeAddress();
  drawTable(task);
  drawFront(task);
  drawComparison(task);
}

for (const key of ["task", "method", "size", "search"]) byId(key).oninput = (event) => { state[key] = event.target.value; draw(); };
for (const key of ["published", "canary"]) byId(key).onchange = (event) => { state[key] = event.target.checked; draw(); };
byId("controls").onsubmit = (event) => event.preventDefault();
window.onhashchange = () => { readAddress(); draw(); };
readAddress();
drawGroups();
draw();
if (state.compare.length === 2) byId("comparison").scrollIntoView();
