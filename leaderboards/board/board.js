// Draws everything that the state asks for, and listens.

function options(id, texts, all) {
  const chosen = texts.some(([value]) => value === state[id]) ? state[id] : (state[id] = "");
  byId(id).replaceChildren(...[...(all ? [["", all]] : []), ...texts].map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
}

function drawControls() {
  const systems = currentRows().filter(isSystem);
  const values = (key) => [...new Set(systems.map((row) => row[key]).filter(Boolean))].sort().map((value) => [value, value]);
  options("task", board.tasks.map((one) => [one.task, one.members.length ? `${one.task}: mean of ${one.members.length} tasks` : one.task]));
  options("family", values("family"), "all methods");
  options("tier", values("tier"), "all tiers");
  options("size", [["none", "no generator"], ["0-1e9", "below 1 B"], ["1e9-1e10", "1 to 10 B"], ["1e10-1e15", "10 B and more"], ["unknown", "size not declared"]], "all sizes");
  if (byId("search").value !== state.search) byId("search").value = state.search;
  for (const key of ["grey", "published"]) {
    byId(key).checked = state[key];
    byId(key).parentElement.hidden = !currentRows().some(key === "grey" ? isGrey : (row) => row.kind === "published");
  }
}

let comparison; // is drawn when its data are loaded
async function draw() {
  const task = currentTask();
  writeAddress();
  try {
    await load("rows", task.task, `${task.task}.rows`);
  } catch (error) {
    byId("about").textContent = error.message;
    return;
  }
  if (currentTask() !== task) return;
  drawControls();
  writeAddress();
  drawTable(task);
  drawTray(task);
  drawFigures();
  comparison = drawComparison(task);
}

// After the table is painted, and once while somebody types: the figures are below it.
let waiting = 0;
function drawFigures() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const rows = currentRows().filter(isShown);
    byId("figures").hidden = false; // a figure is as wide as its place
    drawFront(currentTask(), rows);
    drawCoverage(rows);
    drawHeat(currentTask(), rows);
    byId("figures").hidden = ["front", "coverage"].every((id) => byId(id).parentElement.hidden);
  }, 120);
}

for (const key of ["task", "family", "size", "tier", "search"]) {
  byId(key).oninput = (event) => { state[key] = event.target.value; state.page = 1; draw(); };
}
for (const key of ["grey", "published"]) byId(key).onchange = (event) => { state[key] = event.target.checked; draw(); };
byId("controls").onsubmit = (event) => event.preventDefault();
let width = innerWidth;
window.onresize = () => { if (innerWidth !== width) { width = innerWidth; drawFigures(); } };
window.onhashchange = () => { readAddress(); draw(); };
readAddress();
const start = () => draw().then(() => comparison).then(() => { if (state.compare.length === 2) byId("comparison").scrollIntoView(); });
requestAnimationFrame(() => setTimeout(start)); // the head of the page is painted first
