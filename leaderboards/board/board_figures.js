// The figures: quality against tokens, accuracy against coverage, and the heat map of slices.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 46, right: 14, top: 26, bottom: 44 };
const HEAT_ROWS = 30;
const LABELS = 40; // points whose labels look for room
const ruler = document.createElement("canvas").getContext("2d"); // measures text without a layout of the page
ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;

function node(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// An empty figure as wide as its place, so that letters keep their size; with axes and functions from values to places.
function plot(svg, { x, y, ticksX, ticksY, labelX, labelY }) {
  const width = Math.max(280, Math.round(svg.parentElement.clientWidth) || 600);
  const height = Math.round(Math.min(400, 220 + width / 4));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
  const placeX = (value) => MARGIN.left + ((right - MARGIN.left) * (value - x[0])) / (x[1] - x[0]);
  const placeY = (value) => bottom - ((bottom - MARGIN.top) * (value - y[0])) / (y[1] - y[0]);
  for (const [value, text] of ticksY) {
    svg.append(node("line", { class: "grid", x1: MARGIN.left, x2: right, y1: placeY(value), y2: placeY(value) }));
    svg.append(node("text", { x: MARGIN.left - 8, y: placeY(value) + 4, "text-anchor": "end" }, text));
  }
  for (const [value, text] of ticksX) svg.append(node("text", { x: placeX(value), y: bottom + 18, "text-anchor": "middle" }, text));
  svg.append(node("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }));
  svg.append(node("text", { x: (MARGIN.left + right) / 2, y: height - 6, "text-anchor": "middle" }, labelX));
  svg.append(node("text", { class: "label", x: 4, y: 14 }, labelY));
  return { svg, placeX, placeY, width, height, taken: [] };
}

const overlaps = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

// Points first, then labels where they hide neither a point nor another label; a label without room is left out.
function drawPoints(figure, points) {
  for (const point of points) {
    const dot = node("circle", { class: point.grey ? "grey" : "", cx: point.x, cy: point.y, r: point.grey ? 4 : 5 });
    dot.append(node("title", {}, point.text));
    figure.svg.append(dot);
    figure.taken.push({ x: point.x - 6, y: point.y - 6, width: 12, height: 12 });
  }
  for (const point of [...points].sort((a, b) => b.weight - a.weight).slice(0, LABELS)) {
    const name = shortName(point.name, figure.width < 420 ? 20 : 28);
    const width = ruler.measureText(name).width + 2;
    const room = [[9, 4], [-9 - width, 4], [-width / 2, -10], [-width / 2, 20], [7, -8], [-7 - width, -8], [7, 17], [-7 - width, 17]]
      .map(([dx, dy]) => ({ x: point.x + dx, y: point.y + dy - 11, width, height: 14 }))
      .find((box) => box.x > MARGIN.left && box.x + width < figure.width && box.y > 16 && box.y + 14 < figure.height - MARGIN.bottom + 4 && !figure.taken.some((other) => overlaps(box, other)));
    if (!room) continue;
    figure.svg.append(node("text", { class: point.grey ? "" : "label", x: room.x, y: room.y + 11 }, name));
    figure.taken.push(room);
  }
}

function ticks(low, high) {
  const step = [1, 2, 5, 10, 20, 25, 50].find((one) => (high - low) / one <= 6) ?? 50;
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.floor((high - first) / step) + 1 }, (_, i) => [first + i * step, String(first + i * step)]);
}

function drawFront(task, rows) {
  const known = rows.filter((row) => row.slug && row.cost?.[0] != null && mainScore(row));
  byId("front").parentElement.hidden = known.length === 0;
  if (!known.length) return;
  const log = (tokens) => Math.log10(1 + tokens);
  const most = Math.max(...known.map((row) => log(row.cost[0])), 1) * 1.04;
  const scores = known.map((row) => mainScore(row)[0]);
  const low = Math.min(0, ...scores), high = Math.max(...scores, low + 5) * 1.08;
  const powers = Array.from({ length: Math.floor(most) + 1 }, (_, power) => (power ? 10 ** power : 0));
  const figure = plot(byId("front"), { x: [0, most], y: [low, high], ticksX: powers.map((one) => [log(one), one.toLocaleString("en")]), ticksY: ticks(low, high), labelX: "tokens a question, logarithmic", labelY: task.metric });
  let best = -Infinity;
  const ordered = [...known].sort((a, b) => a.cost[0] - b.cost[0] || mainScore(b)[0] - mainScore(a)[0]);
  const front = ordered.filter((row) => row.rank && mainScore(row)[0] > best && ((best = mainScore(row)[0]), true));
  const corners = front.flatMap((row, i) => [...(i ? [[row.cost[0], mainScore(front[i - 1])[0]]] : []), [row.cost[0], mainScore(row)[0]]]);
  if (front.length) corners.push([10 ** most - 1, best]);
  const line = corners.map(([tokens, score]) => [figure.placeX(log(tokens)), figure.placeY(score)]);
  figure.svg.append(node("polyline", { class: "front", points: line.join(" ") }));
  line.slice(1).forEach(([x, y], i) => {
    const [left, top] = line[i]; // no label on the line
    figure.taken.push({ x: Math.min(x, left), y: Math.min(y, top) - 1, width: Math.abs(x - left) + 1, height: Math.abs(y - top) + 2 });
  });
  drawPoints(figure, known.map((row) => ({
    x: figure.placeX(log(row.cost[0])), y: figure.placeY(mainScore(row)[0]), name: row.name, grey: !row.rank,
    weight: (front.includes(row) ? 1000 : 0) + mainScore(row)[0], text: `${row.name}: ${percent(mainScore(row)[0])}, ${row.cost[0]} tokens a question`,
  })));
}

function drawCoverage(rows) {
  const known = rows.filter((row) => row.slug && row.curve);
  const telling = known.some((row) => row.curve.length > 1 || row.curve.at(-1)[0] < 100);
  byId("coverage").parentElement.hidden = !telling;
  if (!telling) return;
  const high = Math.min(100, Math.max(...known.flatMap((row) => row.curve.map((point) => point[1])), 5) * 1.08);
  const low = Math.max(0, Math.min(...known.map((row) => row.curve.at(-1)[0])) - 8);
  const figure = plot(byId("coverage"), { x: [low, 102], y: [0, high], ticksX: ticks(low, 100), ticksY: ticks(0, high), labelX: "answered, percent of the questions", labelY: "right, percent of the answered" });
  for (const row of known) if (row.curve.length > 1) figure.svg.append(node("polyline", { class: row.rank ? "curve" : "curve grey", points: row.curve.filter(([share]) => share >= low).map(([share, right]) => `${figure.placeX(share)},${figure.placeY(right)}`).join(" ") }));
  drawPoints(figure, known.map((row) => {
    const [share, right] = row.curve.at(-1);
    return { x: figure.placeX(share), y: figure.placeY(right), name: row.name, grey: !row.rank, weight: right + (share < 100 ? 1000 : 0), text: `${row.name}: answers ${percent(share)} % of the questions, ${percent(right)} % of these right` };
  }));
}

function drawHeat(task, rows) {
  const known = rows.filter((row) => row.slices && !(row.kind === "canary" && row.flags)).slice(0, HEAT_ROWS);
  byId("heat").hidden = known.length === 0;
  if (!known.length) return;
  const values = known.flatMap((row) => row.slices.filter((value) => value !== null));
  const high = Math.max(...values, 1);
  const keys = task.slices.map((name) => name.split(": "));
  const spans = [...new Set(keys.map(([key]) => key))].map((key) => [key, keys.filter((one) => one[0] === key).length]);
  const cell = (value) => {
    const element = make("td", { className: "number heat" }, value === null || value === undefined ? "" : percent(value));
    if (value != null) element.style.setProperty("--heat", Math.max(0, value) / high);
    return element;
  };
  const head = make("thead", {},
    make("tr", {}, make("th", { scope: "col", rowSpan: 2 }, "entry"), ...spans.map(([key, span]) => make("th", { scope: "colgroup", colSpan: span }, key.replaceAll("_", " ")))),
    make("tr", {}, ...keys.map(([, value]) => make("th", { scope: "col", className: "number" }, value.replaceAll("_", " ")))));
  const lines = known.map((row) => make("tr", { className: row.kind }, make("th", { scope: "row" }, row.slug ? make("a", { href: `entries/${row.slug}.html#${task.task}` }, shortName(row.name, 44)) : row.name), ...task.slices.map((_, i) => cell(row.slices[i]))));
  byId("heat-about").textContent = `${task.metric} in percent by slice${known.length === HEAT_ROWS ? `, of the first ${HEAT_ROWS} rows` : ""}. The stronger the colour, the better.`;
  byId("heat-table").replaceChildren(head, make("tbody", {}, ...lines));
}
