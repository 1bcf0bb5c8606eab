// Helps those who have JavaScript: every page works without it. Text is only ever set as text.
import { knownWords, paint } from "./sql.js";

const again = Number(document.querySelector('meta[name="look-again"]')?.content);
const said = (page) => page.querySelector("main")?.textContent.replace(/\s+/g, " ");
const before = said(document); // As the server wrote it: what follows adds to it.

// A first-run address has its token behind the #, which no server sees.
const invitation = document.querySelector("#invitation");
if (invitation && location.hash.startsWith("#dsc_")) {
  invitation.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  document.querySelector("h1").after(invitation.form); // First what is needed now.
  invitation.form.querySelector("button").focus();
}

// Questions that are shown are painted as in the editor.
const WORDS =
  "SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER ASC DESC LIMIT AS AND OR NOT IN IS NULL BETWEEN LIKE CASE WHEN THEN ELSE END JOIN LEFT INNER ON USING WITH FILTER";
for (const place of document.querySelectorAll("pre.sql")) {
  paint(place, place.textContent, knownWords(WORDS, "COUNT SUM AVG MEDIAN MIN MAX"));
}

// Texts to take away get a button that copies them.
for (const place of document.querySelectorAll(".copied")) {
  const button = document.createElement("button");
  const told = place.querySelector("pre").getAttribute("aria-label") ?? "text";
  const text = place.querySelector("pre").textContent.replace(/\n$/, "");
  button.type = "button";
  button.className = "quiet small";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${told}`);
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    button.textContent = done ? "Copied" : "Press Ctrl-C";
    if (!done) getSelection().selectAllChildren(place.querySelector("pre"));
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  place.append(button);
}

// A page that waits for something asks again, and is shown anew when it says something else.
async function lookAgain() {
  const answer = await fetch(location.href).catch(() => null);
  const text = answer?.ok ? await answer.text() : null;
  const found = text === null ? before : said(new DOMParser().parseFromString(text, "text/html"));
  if (found !== before) location.reload();
  else setTimeout(lookAgain, 1000 * again);
}
if (again > 0) setTimeout(lookAgain, 1000 * again);
