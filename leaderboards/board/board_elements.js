"use strict";
// State of the page, its address, and how elements are made. Texts of entries are set as text, never as HTML.

const board = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const TEXTS = ["task", "family", "size", "tier", "search", "sort", "show"]; // of the state, "" for all
const SWITCHES = ["grey", "published", "down"]; // true unless the address says 0
const PER_PAGE = 100; // rows that are drawn at once
const state = { page: 1, compare: [] };
const loaded = { entry: {}, rows: {}, questions: {} };
if (board.tasks.length) loaded.rows[board.tasks[0].task] = board.rows;

function boardData([kind, name, value]) {
  loaded[kind][name] = value;
}

function load(kind, name, file) {
  if (loaded[kind][name]) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `data/${file}.js`;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`data/${file}.js cannot be read.`));
    document.head.append(script);
  });
}

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return element;
}

function button(text, onclick, properties = {}) {
  return make("button", { type: "button", onclick, ...properties }, text);
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of TEXTS) state[key] = given.get(key) ?? "";
  for (const key of SWITCHES) state[key] = given.get(key) !== "0";
  if (!board.tasks.some((one) => one.task === state.task)) state.task = board.tasks[0].task;
  state.compare = (given.get("compare") ?? "").split(",").filter(Boolean).slice(0, 2);
  state.page = 1;
}

function writeAddress() {
  const address = new URLSearchParams();
  for (const key of TEXTS) if (state[key]) address.set(key, state[key]);
  for (const key of SWITCHES) if (!state[key]) address.set(key, "0");
  if (state.compare.length) address.set("compare", state.compare.join(","));
  history.replaceState(null, "", `#${address}`);
}

const currentTask = () => board.tasks.find((one) => one.task === state.task);
const currentRows = () => loaded.rows[state.task] ?? [];
const mainScore = (row) => row.scores?.[0] && row.scores[currentTask().metrics.findIndex(([key]) => key === currentTask().metric)];
const isSystem = (row) => Boolean(row.slug) || row.kind === "self-reported";
const isGrey = (row) => row.kind === "canary" || row.kind === "trivial";
const shortName = (name, most = 28) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);
const percent = (value) => value.toFixed(1);
const withSign = (value) => (value > 0 ? "+" : "") + percent(value);
const interval = (low, high) => (low === undefined ? "" : ` [${percent(low)}, ${percent(high)}]`);
const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const pValue = (p) => (p < 0.001 ? "p < 0.001" : `p = ${p}`);
