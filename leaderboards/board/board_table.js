// The table: filters, columns, rows.

function hasSize(row) {
  if (!state.size) return true;
  if (state.size === "none") return !row.generator;
  if (!row.generator) return false;
  if (state.size === "unknown") return row.parameters === undefined;
  const [low, high] = state.size.split("-").map(Number);
  return row.parameters !== undefined && row.parameters >= low && row.parameters < high;
}

function isShown(row) {
  if (row.kind === "published" && !state.published) return false;
  if (isGrey(row) && !state.grey) return false;
  const text = [row.name, row.team, row.method, row.generator, row.retriever].join(" ").toLowerCase();
  if (!text.includes(state.search.toLowerCase())) return false;
  if (!isSystem(row)) return !state.family && !state.size && !state.tier;
  return (!state.family || row.family === state.family) && (!state.tier || row.tier === state.tier) && hasSize(row);
}

function columnsOf(task, rows) {
  const scores = task.metrics.map(([key, label, higher], i) => {
    const ends = rows.flatMap((row) => (row.kind === "canary" && row.flags ? [] : row.scores?.[i] ?? []));
    const low = Math.min(0, ...ends);
    const scale = { low, high: Math.max(...ends, low + 1) };
    const main = key === task.metric;
    return { key, label, higher, main, value: (row) => row.scores?.[i]?.[0], cell: (row) => scoreCell(row.scores?.[i], scale) };
  });
  const costs = ["tokens", "seconds", "cost"].map((key, i) => ({
    key, label: key === "cost" ? "US $" : key, higher: false,
    value: (row) => row.cost?.[i] ?? undefined,
    cell: (row) => (row.cost?.[i] == null ? [] : [Number(row.cost[i].toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 })]),
  }));
  const gains = [["over trivial", "best"], ["over standard_rag", "standard_rag"]].map(([label, start]) => {
    const find = (row) => row.gains?.find(([other]) => other.startsWith(start));
    return { key: start, label, higher: true, value: (row) => find(row)?.[1], cell: (row) => gainCell(find(row)), gain: true };
  });
  return [...scores, ...gains, ...costs].filter((column) => rows.some((row) => column.value(row) !== undefined));
}

function scoreCell(score, scale) {
  if (!score) return [];
  const [mean, low, high] = score;
  const place = (value) => `${Math.min(100, (100 * (value - scale.low)) / (scale.high - scale.low))}%`;
  const track = make("span", { className: "track", ariaHidden: "true" });
  if (low !== undefined) {
    const bar = make("i");
    bar.style.left = place(low);
    bar.style.width = `calc(${place(high)} - ${place(low)})`;
    track.append(bar);
  }
  const mark = make("b");
  mark.style.left = place(mean);
  track.append(mark);
  const words = low === undefined ? "" : `95 % interval ${percent(low)} to ${percent(high)}`;
  return [make("span", { className: "value", title: words }, percent(mean)), words && make("span", { className: "hidden" }, ` (${words})`), track];
}

function gainCell(gain) {
  if (!gain) return [];
  const [other, mean] = gain;
  const [low, high, p] = gain.length > 3 ? gain.slice(2) : [undefined, undefined, gain[2]];
  const budget = /, (equal budget|[\d.e+]+ times its tokens)$/.exec(other)?.[1];
  const note = [p < 0.05 ? "" : "n.s.", budget?.replace(" times its tokens", " × tokens") ?? ""].filter(Boolean).join(", ");
  return [make("span", { className: "value", title: `${other}: ${withSign(mean)}${interval(low, high)}, ${pValue(p)}` }, withSign(mean)), note && make("small", {}, note)];
}

function sorted(rows, columns) {
  const column = columns.find((one) => one.key === state.sort);
  if (!column) return rows;
  const sign = (column.higher ? -1 : 1) * (state.down ? 1 : -1);
  const known = (row) => column.value(row) !== undefined;
  const order = (a, b) => sign * (column.value(a) - column.value(b)) || a.name.localeCompare(b.name);
  return [...rows.filter(known).sort(order), ...rows.filter((row) => !known(row))];
}

function headCell(column) {
  const chosen = state.sort === column.key;
  const falling = state.down === column.higher;
  const sort = () => {
    state.down = chosen ? !state.down : true;
    state.sort = column.key;
    draw().then(() => byId("table").tHead.querySelector(`[data-key="${CSS.escape(column.key)}"]`)?.focus());
  };
  const head = button([column.label, make("span", { className: "arrow", ariaHidden: "true" }, chosen ? (falling ? "▼" : "▲") : "")], sort);
  head.dataset.key = column.key;
  const cell = make("th", { scope: "col", className: `number${column.main ? " main" : ""}` }, head);
  cell.setAttribute("aria-sort", chosen ? (falling ? "descending" : "ascending") : "none");
  return cell;
}

function tick(row) {
  const input = make("input", { type: "checkbox", checked: state.compare.includes(row.slug), ariaLabel: `Compare ${row.name}` });
  input.dataset.slug = row.slug;
  input.onchange = () => {
    state.compare = input.checked ? [...state.compare, row.slug].slice(-2) : state.compare.filter((slug) => slug !== row.slug);
    draw().then(() => byId("table").querySelector(`input[data-slug="${CSS.escape(row.slug)}"]`)?.focus());
  };
  return input;
}

const PARTS = { canary: "no system", published: "published, not verified", flagged: "waits for a maintainer", "self-reported": "self-reported, not verified", "own corpus": "over a corpus of its own", trivial: "trivial baseline" };

function bodyRow(row, task, columns, even) {
  const line = make("tr", { className: `${row.kind}${row.rank ? " ranked" : ""}${even ? " even" : ""}` });
  const rank = make("td", { className: "rank" });
  rank.dataset.label = "rank";
  if (row.rank) {
    const [place, best, worst] = row.rank;
    rank.append(make("b", {}, String(place)), best === worst ? "" : make("small", { title: "ranks that the significant differences allow" }, `${best}–${worst}`));
  }
  const link = row.slug ? { href: `entries/${row.slug}.html#${task.task}` } : { href: row.source, rel: "nofollow noopener" };
  const name = row.slug || row.source ? make("a", link, row.name) : make("span", {}, row.name);
  const about = [row.team, row.method, row.generator, row.retriever, row.tier === "re-run" && "re-run"].filter(Boolean).join(" · ");
  const badge = PARTS[row.kind] && make("span", { className: "badge" }, PARTS[row.kind]);
  const flags = (row.flags ?? []).map((flag) => make("small", { className: "flag" }, flag));
  const cleared = row.cleared && make("details", {}, make("summary", {}, "flag cleared"), make("small", {}, row.cleared));
  const note = row.note && row.note !== PARTS[row.kind] && make("small", {}, row.note);
  const title = make("span", { className: "name" }, row.slug && tick(row), make("span", {}, name, " ", badge));
  const head = make("th", { scope: "row" }, title, about && make("small", {}, about), note, cleared, ...flags);
  line.append(rank, head);
  for (const column of columns) {
    const cell = make("td", { className: `number${column.main ? " main" : ""}${column.gain ? " gain" : ""}` }, ...column.cell(row));
    cell.dataset.label = column.label;
    line.append(cell);
  }
  return line;
}

function drawTable(task) {
  const all = currentRows();
  const columns = columnsOf(task, all);
  const rows = sorted(all.filter(isShown), columns);
  const first = rows.slice(0, PER_PAGE * state.page);
  const back = () => { state.sort = ""; state.down = true; draw().then(() => byId("table").tHead.querySelector("button").focus()); };
  const rank = make("th", { scope: "col", className: "rank" }, button("rank", back));
  rank.setAttribute("aria-sort", state.sort ? "none" : "ascending");
  byId("table").tHead.replaceChildren(make("tr", {}, rank, make("th", { scope: "col" }, "entry"), ...columns.map(headCell)));
  const groups = [...new Set(rows.filter((row) => row.rank).map((row) => row.rank[0]))].sort((a, b) => a - b);
  byId("table").tBodies[0].replaceChildren(...first.map((row) => bodyRow(row, task, columns, row.rank && groups.indexOf(row.rank[0]) % 2)));
  const more = () => { state.page += 1; draw(); };
  const rest = rows.length - first.length;
  byId("more").replaceChildren(...(rest ? [button(`Show ${Math.min(rest, PER_PAGE)} more of ${count(rest, "row")}`, more)] : []));
  byId("none").hidden = rows.length > 0;
  byId("about").textContent = `${about(task)} ${rows.length} of ${count(all.length, "row")}.`;
}

function about(task) {
  const size = `${count(task.questions, "question")}, version ${task.version}`;
  if (task.members.length) return `Mean over ${count(task.members.length, "task")} (${size}), ranked by ${task.metric}. Who lacks a task has no mean and no rank.`;
  return `${size}, data ${task.data}, ranked by ${task.metric}.`;
}
