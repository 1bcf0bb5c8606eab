// Helps those who have JavaScript: every page works without it. Text is only ever set as text.
const token = document.querySelector('meta[name="form-token"]')?.content;

// A first-run address has its token behind the #, which no server sees.
const invitation = document.querySelector("#invitation");
if (invitation && location.hash.startsWith("#dsc_")) {
  invitation.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  invitation.focus();
}

const form = document.querySelector("#ask");
const strip = document.querySelector("#strip");

function line(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function show(told) {
  const more = told.affordable
    ? ` · ${told.more_like_this.toLocaleString("en")} such questions fit into what is left`
    : " · does not fit into what is left";
  const head = document.createElement("p");
  head.append(line("b", told.cost), more);
  const list = document.createElement("dl");
  for (const [name, text] of Object.entries(told.errors)) {
    const pair = document.createElement("div");
    pair.append(line("dt", name), line("dd", text));
    list.append(pair);
  }
  strip.replaceChildren(head, list);
}

function refuse(problem) {
  const parts = [line("p", problem.detail)];
  if (problem.excerpt) parts.push(line("pre", `${problem.excerpt}\n${" ".repeat(problem.caret ?? 0)}^`));
  if (problem.way_out) parts.push(line("p", `Way out: ${problem.way_out}`));
  strip.replaceChildren(...parts);
}

let waiting;
let asked = 0;
async function price() {
  const said = new FormData(form);
  const body = { sql: said.get("sql"), [said.get("way")]: said.get("amount").trim() };
  if (said.get("delta").trim()) body.delta = said.get("delta").trim();
  const mine = ++asked;
  const answer = await fetch(`/v1/datasets/${encodeURIComponent(said.get("dataset"))}/estimate`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-form-token": token },
    body: JSON.stringify(body),
  }).catch(() => null);
  if (!answer || mine !== asked) return;
  const told = await answer.json();
  if (answer.ok) show(told);
  else refuse(told);
}

if (form && strip && token) {
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(price, 500);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.querySelector('[value="dummy"]').click();
  });
  if (!strip.querySelector("b") && !document.querySelector(".trouble")) price();
}
