// Shows the price while one types, on the step of the wizard where that is chosen. Without it a button does the same.
const form = document.querySelector("#accuracy");
// What is asked is written on the strip: a field called dataset hides that property of its form.
const strip = document.querySelector("#told");
const token = document.querySelector('meta[name="form-token"]')?.content;

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
  if (problem.way_out) parts.push(line("p", `Way out: ${problem.way_out}`));
  strip.replaceChildren(...parts);
}

let asked = 0;
async function price() {
  const said = new FormData(form);
  const body = { sql: strip.dataset.sql, [said.get("way")]: said.get("amount").trim() };
  if (strip.dataset.intervals) body.quantile_intervals = true;
  const expected = Number((said.get("expected") ?? "").trim());
  if (Number.isInteger(expected) && expected > 0) body.expected = expected;
  const mine = ++asked;
  const answer = await fetch(`/v1/datasets/${encodeURIComponent(strip.dataset.dataset)}/estimate`, {
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
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(price, 400);
  });
  // Somebody may have typed before this was loaded.
  const chosen = form.elements.namedItem("way").selectedOptions[0];
  const amount = form.elements.namedItem("amount");
  if (!chosen?.defaultSelected || amount.value !== amount.defaultValue) price();
}
