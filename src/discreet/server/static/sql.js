// Splits SQL into tokens and paints them. Text is only ever set as text; what it means is the server's business.
const TOKEN = new RegExp(
  [
    "(?<comment>--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$))",
    "(?<text>'(?:[^']|'')*(?:'|$))",
    '(?<quoted>"(?:[^"]|"")*(?:"|$))',
    "(?<number>\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)",
    "(?<word>[\\p{L}_][\\p{L}\\p{N}_]*)",
    "(?<space>\\s+)",
    "(?<sign>[^])",
  ].join("|"),
  "gu",
);

export function tokens(sql) {
  const found = [];
  for (const match of sql.matchAll(TOKEN)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    found.push({ kind, text: match[0], start: match.index, end: match.index + match[0].length });
  }
  return found;
}

// `known` has two sets of words in capitals. `wrong` is a place that is underlined, or -1.
export function paint(place, sql, known, wrong = -1) {
  const parts = document.createDocumentFragment();
  for (const { kind, text, start, end } of tokens(sql)) {
    const upper = kind === "word" ? text.toUpperCase() : "";
    const name = known.words.has(upper) ? "keyword" : known.functions.has(upper) ? "function" : kind;
    const isWrong = wrong >= start && wrong < end;
    if (!isWrong && (name === "space" || name === "word" || name === "sign" || name === "quoted")) {
      parts.append(text);
      continue;
    }
    const span = document.createElement("span");
    span.className = `sql-${name}${isWrong ? " wrong" : ""}`;
    span.textContent = text;
    parts.append(span);
  }
  if (wrong >= sql.length) {
    const end = document.createElement("span");
    end.className = "wrong";
    end.textContent = " ";
    parts.append(end);
  }
  parts.append("\n"); // So that a last line that is empty has its height.
  place.replaceChildren(parts);
}

// The place of a line and a column, which both count from one.
export function placeOf(sql, line, column) {
  const lines = sql.split("\n");
  if (!(line >= 1 && line <= lines.length)) return sql.length;
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  // The server counts characters; a browser counts UTF-16 units.
  const units = [...lines[line - 1]].slice(0, Math.max(0, column - 1)).join("").length;
  return before + units;
}

const set = (text) => new Set((text ?? "").split(" ").filter(Boolean));
export const knownWords = (words, functions) => ({ words: set(words), functions: set(functions) });
