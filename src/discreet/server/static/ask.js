// The page on which one asks: the editor, names that are put into it, and the price of what is being written.
import { SqlEditor, insert } from "./editor.js";

const form = document.querySelector("#ask");
const strip = document.querySelector("#strip");
const frame = document.querySelector(".editor");
const release = form?.querySelector('[value="release"]');

function line(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function pairs(listed) {
  const list = document.createElement("dl");
  for (const [name, text] of Object.entries(listed)) {
    const pair = document.createElement("div");
    pair.append(line("dt", name), line("dd", text));
    list.append(pair);
  }
  return list;
}

function show(told) {
  const more = told.affordable
    ? ` · ${told.more_like_this.toLocaleString("en")} such questions fit into what is left`
    : " · does not fit into what is left";
  const head = document.createElement("p");
  head.append(line("b", told.cost), more);
  strip.replaceChildren(head, pairs(told.errors));
  release.textContent = `Release for ${told.cost}`;
}

function refuse(problem) {
  const parts = [line("p", problem.detail)];
  if (problem.excerpt) parts.push(line("pre", `${problem.excerpt}\n${" ".repeat(problem.caret ?? 0)}^`));
  if (problem.way_out) parts.push(line("p", `Way out: ${problem.way_out}`));
  strip.replaceChildren(...parts);
  release.textContent = "Release";
}

// Names of tables, columns and values become buttons that put them into the editor.
function makeButtons(area) {
  for (const one of document.querySelectorAll("code[data-insert]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "name";
    button.title = `Insert ${one.dataset.insert}`;
    button.addEventListener("click", (event) => {
      event.preventDefault(); // One stands in a summary, which would close.
      const before = area.value[area.selectionStart - 1] ?? " ";
      insert(area, /[\s("',]/.test(before) ? one.dataset.insert : ` ${one.dataset.insert}`);
    });
    if (one.closest("summary") && one.dataset.kind === "table") continue; // A summary is a button already.
    one.replaceWith(button);
    button.append(one);
  }
}

let waiting;
let asked = 0;
async function price(editor) {
  const mine = ++asked;
  const answer = await fetch("/ask/price", { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(
    () => null,
  );
  if (mine !== asked) return;
  if (!answer?.ok) {
    strip.replaceChildren(line("p", "No price now: the server could not be asked."));
    return;
  }
  const { estimate, problem } = await answer.json();
  if (mine !== asked) return;
  if (estimate) show(estimate);
  else refuse(problem);
  editor.markLine(problem?.line, problem?.column);
}

if (form && strip && frame) {
  const editor = new SqlEditor(frame);
  makeButtons(editor.area);
  document.body.classList.add("has-scripts");
  form.addEventListener("input", (event) => {
    if (event.target.closest(".save")) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => price(editor), 400);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.querySelector('[value="dummy"]').click();
    if (event.key === "Enter" && event.target.id === "title") {
      event.preventDefault();
      form.querySelector('[value="save"]').click();
    }
  });
  if (!strip.querySelector("b") && !document.querySelector(".trouble")) price(editor);
}
