// An editor for SQL: a painted copy under a textarea whose own letters are transparent, and a list of completions.
// Without it the textarea is what it is. Input methods, undo, selection and the keyboard stay the browser's.
import { knownWords, paint, placeOf, tokens } from "./sql.js";

const MOST = 9; // All of them fit: a list that scrolls would need the focus.

export class SqlEditor {
  constructor(frame) {
    this.frame = frame;
    this.area = frame.querySelector("textarea");
    this.known = knownWords(frame.dataset.words, frame.dataset.functions);
    this.candidates = candidates(this.known);
    this.wrong = -1;
    this.makeParts();
    this.listen();
    const { line, column } = this.area.dataset;
    if (line) this.wrong = placeOf(this.area.value, Number(line), Number(column));
    this.draw();
  }

  makeParts() {
    this.painted = document.createElement("pre");
    this.painted.className = "painted";
    this.painted.setAttribute("aria-hidden", "true");
    this.list = document.createElement("ul");
    this.list.id = "completions";
    this.list.className = "completions";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Completions");
    this.list.hidden = true;
    this.told = document.createElement("span");
    this.told.className = "unseen";
    this.told.setAttribute("role", "status");
    this.frame.prepend(this.painted);
    this.frame.append(this.list, this.told);
    this.frame.classList.add("live");
    this.area.setAttribute("aria-autocomplete", "list");
    this.area.setAttribute("aria-controls", this.list.id);
  }

  listen() {
    const area = this.area;
    area.addEventListener("input", (event) => {
      this.mark(-1);
      if (event.isComposing) return this.close();
      if (event.inputType?.startsWith("insert") && event.inputType !== "insertFromPaste") this.complete(false);
      else this.close();
    });
    area.addEventListener("compositionend", () => this.draw());
    area.addEventListener("scroll", () => this.follow());
    area.addEventListener("keydown", (event) => this.press(event));
    area.addEventListener("blur", () => this.close());
    area.addEventListener("pointerdown", () => this.close());
    new ResizeObserver(() => this.follow()).observe(area);
  }

  // Underline a place; -1 for none.
  mark(place) {
    this.wrong = place;
    if (place < 0) this.area.removeAttribute("aria-invalid");
    else this.area.setAttribute("aria-invalid", "true");
    this.draw();
  }

  markLine(line, column) {
    this.mark(line ? placeOf(this.area.value, line, column ?? 1) : -1);
  }

  draw() {
    paint(this.painted, this.area.value, this.known, this.wrong);
    this.follow();
  }

  follow() {
    this.painted.style.width = `${this.area.clientWidth}px`;
    this.painted.style.height = `${this.area.clientHeight}px`;
    this.painted.scrollTop = this.area.scrollTop;
    this.painted.scrollLeft = this.area.scrollLeft;
  }

  // --- completion ---

  press(event) {
    if (event.isComposing) return;
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      return this.complete(true);
    }
    if (this.list.hidden) return;
    const options = this.found.length;
    if (event.key === "ArrowDown") this.choose((this.active + 1) % options);
    else if (event.key === "ArrowUp") this.choose((Math.max(this.active, 0) + options - 1) % options);
    else if (event.key === "Escape") this.close();
    else if (event.key === "Tab" && !event.shiftKey) this.take(this.found[Math.max(this.active, 0)]);
    else if (event.key === "Enter" && this.active >= 0 && !event.ctrlKey) this.take(this.found[this.active]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // What is being written: from where to where, and the letters before the caret.
  written() {
    const { value, selectionStart: caret, selectionEnd } = this.area;
    if (caret !== selectionEnd) return null;
    const all = tokens(value);
    const at = all.findIndex(({ start, end }) => start < caret && caret <= end);
    const token = all[at];
    const before = all.slice(0, at < 0 ? undefined : at).filter(({ kind, end }) => kind !== "space" && end <= caret);
    if (token?.kind === "comment" || token?.kind === "number") return null;
    if (!token || !["word", "text", "quoted"].includes(token.kind)) {
      const done = all.filter(({ kind, end }) => kind !== "space" && end <= caret);
      return { start: caret, end: caret, prefix: "", kind: "", before: done };
    }
    const closed = token.kind !== "word" && token.text.length > 1 && token.text.at(-1) === token.text[0];
    if (closed && caret === token.end) return null;
    return { ...token, prefix: value.slice(token.start, caret), before };
  }

  complete(asked) {
    const now = this.written();
    if (!now || (!asked && !now.prefix)) return this.close();
    this.found = matching(this.candidates, now).slice(0, MOST);
    const only = this.found.length === 1 && this.found[0].insert === now.prefix;
    if (!this.found.length || only) return this.close(asked);
    this.place = now;
    this.list.replaceChildren(...this.found.map((one, number) => this.option(one, number)));
    this.list.hidden = false;
    this.position(now.start);
    this.choose(asked ? 0 : -1);
    if (asked) this.told.textContent = `${this.found.length} completions`;
  }

  option(one, number) {
    const made = document.createElement("li");
    made.id = `completion-${number}`;
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", "false");
    const kind = document.createElement("small");
    kind.textContent = one.kind;
    made.append(one.insert, " ", kind);
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // The caret stays where it is.
      this.take(one);
    });
    return made;
  }

  choose(number) {
    this.active = number;
    for (const [place, option] of [...this.list.children].entries()) {
      option.setAttribute("aria-selected", String(place === number));
      if (place === number) option.scrollIntoView({ block: "nearest" });
    }
    if (number < 0) this.area.removeAttribute("aria-activedescendant");
    else this.area.setAttribute("aria-activedescendant", `completion-${number}`);
  }

  // Under the letters that are completed, where the painted copy has them.
  position(offset) {
    this.follow();
    const range = document.createRange();
    const walker = document.createTreeWalker(this.painted, NodeFilter.SHOW_TEXT);
    let left = offset;
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (left <= node.length) {
        range.setStart(node, left);
        range.setEnd(node, Math.min(left + 1, node.length));
        break;
      }
      left -= node.length;
    }
    const around = this.frame.getBoundingClientRect();
    const box = range.getClientRects()[0] ?? around;
    const widest = Math.max(0, around.width - this.list.offsetWidth);
    this.list.style.left = `${Math.min(Math.max(0, box.left - around.left), widest)}px`;
    this.list.style.top = `${Math.min(box.bottom - around.top, around.height) + 4}px`;
  }

  take(one) {
    const { start, end } = this.place;
    this.close();
    insert(this.area, one.insert, start, end);
  }

  close(asked = false) {
    this.list.hidden = true;
    this.choose(-1);
    this.told.textContent = asked === true ? "no completion" : "";
  }
}

// Put a text into the editor, as if it were typed: undo knows it.
export function insert(area, text, start = area.selectionStart, end = area.selectionEnd) {
  area.focus();
  area.setSelectionRange(start, end);
  if (!document.execCommand("insertText", false, text)) {
    area.setRangeText(text, start, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

function candidates(known) {
  const listed = [...document.querySelectorAll("[data-insert]")].map((one) => ({
    insert: one.dataset.insert,
    kind: one.dataset.kind,
    of: one.closest(".values")?.closest("li")?.querySelector("[data-kind=column]")?.dataset.insert,
  }));
  const functions = [...known.functions].map((name) => ({ insert: name, kind: "function" }));
  const words = [...known.words].map((name) => ({ insert: name, kind: "word" }));
  const seen = new Set();
  return [...listed, ...functions, ...words].filter(({ insert: text, kind }) => {
    const key = `${kind} ${text}`;
    return !seen.has(key) && seen.add(key);
  });
}

const bare = (text) => text.replace(/^['"]/, "").toLowerCase();
const AFTER = { FROM: "table", JOIN: "table" };

// What fits the letters so far; first what is usual at this place.
function matching(all, { prefix, kind, before }) {
  const wanted = bare(prefix);
  const last = before.at(-1)?.text.toUpperCase();
  const column = [...before].reverse().find((one) => one.kind === "word" || one.kind === "quoted");
  const compared = /^(=|<>|<|>|,|\(|IN|LIKE)$/.test(last ?? "");
  const names = new Set(before.map(({ text }) => text));
  return all
    .filter((one) => {
      if (kind === "text" && one.kind !== "value") return false;
      if (kind === "quoted" && !one.insert.startsWith('"')) return false;
      return bare(one.insert).startsWith(wanted);
    })
    .map((one) => {
      let rank = { column: 2, function: 3, table: 4, word: 5, value: 6 }[one.kind];
      if (AFTER[last] === one.kind) rank = 0;
      if (one.kind === "value" && compared && (one.of === column?.text || before.at(-3)?.text === one.of)) rank = 0;
      if (one.kind === "value" && names.has(one.of) && compared) rank = Math.min(rank, 1);
      return { ...one, rank };
    })
    .filter((one) => one.kind !== "value" || kind === "text" || one.rank < 2 || wanted.length > 1)
    .sort((one, other) => one.rank - other.rank);
}
