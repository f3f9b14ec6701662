"use strict";
// Filters, sorts and shows the rows of the report. Texts go into the page as text only (textContent).
(() => {
  const data = JSON.parse(document.getElementById("row-data").textContent);
  const at = (id) => document.getElementById(id);
  const make = (tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };
  const words = (tag, text, name) => {
    const made = make(tag, text, name);
    made.dir = "auto";
    return made;
  };
  const MORE = 25;
  const LETTERS = "ABCDEFGHIJ";
  const [run, type, state, low, high, search, sort, list, count, more] =
    ["by-run", "by-type", "by-state", "by-low", "by-high", "by-words", "by-order", "row-list", "row-count", "row-more"]
      .map(at);
  const several = data.runs.length > 1;
  let found = [];
  let shown = 0;

  const option = (select, value, text) => {
    const made = make("option", text);
    made.value = value;
    select.append(made);
  };
  data.runs.forEach((name, i) => option(run, i, name));
  data.types.forEach((name, i) => option(type, i, name));

  // the filter's counts are those of the chosen run
  const states = () => {
    const before = state.value;
    const of = data.rows.map((row) => row.runs[run.value || 0]);
    state.replaceChildren();
    option(state, "", `all ${of.length.toLocaleString("en")}`);
    for (const [name, text] of Object.entries(data.states)) {
      const many = of.filter((one) => one.state === name).length;
      if (many) option(state, name, `${text} (${many.toLocaleString("en")})`);
    }
    const cut = of.filter((one) => one.cut).length;
    if (cut) option(state, "cut", `cut off (${cut.toLocaleString("en")})`);
    state.value = [...state.options].some((one) => one.value === before) ? before : "";
  };

  const textOf = (row) =>
    (row.text ??= [row.id, row.question, row.answer, ...(row.choices ?? []), ...row.runs.map((one) => one.said)]
      .join("\n").toLowerCase());

  const spread = (row) => {
    const scores = row.runs.map((one) => one.score).filter((score) => score !== undefined);
    return scores.length > 1 ? Math.max(...scores) - Math.min(...scores) : undefined;
  };

  const find = () => {
    const number = run.value || 0;
    const terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [from, to] = [low, high].map((input) => (input.value === "" ? undefined : Number(input.value)));
    found = data.rows.filter((row) => {
      const one = row.runs[number];
      if (type.value !== "" && row.type !== Number(type.value)) return false;
      if (state.value === "cut" ? !one.cut : state.value && one.state !== state.value) return false;
      if (from !== undefined && !(one.score >= from)) return false;
      if (to !== undefined && !(one.score <= to)) return false;
      return terms.every((term) => textOf(row).includes(term));
    });
    const by = sort.value === "apart" ? (row) => spread(row) : (row) => row.runs[number].score;
    const way = sort.value === "lowest" ? 1 : -1;
    if (sort.value) {
      found = found.map((row) => [by(row), row]).sort(([a], [b]) => {
        if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
        return way * (a - b);
      }).map(([, row]) => row);
    }
    shown = 0;
    list.replaceChildren();
    grow();
  };

  const grow = () => {
    list.append(...found.slice(shown, shown + MORE).map(card));
    shown = Math.min(shown + MORE, found.length);
    const all = data.rows.length.toLocaleString("en");
    count.textContent = `${found.length.toLocaleString("en")} of ${all} rows; ${shown.toLocaleString("en")} shown`;
    more.hidden = shown >= found.length;
  };

  const card = (row) => {
    const box = make("div", undefined, "box");
    const kind = data.types.length > 1 ? `${data.types[row.type]}, ` : "";
    box.append(make("small", `${kind}${row.id}`, "id"), words("p", row.question, "asked"));
    if (row.choices) {
      const options = make("ol", undefined, "options");
      row.choices.forEach((choice, i) => {
        const line = make("li");
        line.append(words(i === row.gold ? "b" : "span", choice), i === row.gold ? " (right)" : "");
        options.append(line);
      });
      box.append(options);
    } else {
      const truth = make("p", "Ground truth: ");
      truth.append(words("b", row.answer));
      const score = row.runs.find((one) => one.truth !== undefined)?.truth;
      if (score !== undefined && !several) truth.append(make("small", ` (to the judge ${score.toFixed(2)})`));
      box.append(truth);
    }
    row.runs.forEach((one, i) => {
      const line = make("div", undefined, "said");
      const head = make("div");
      if (several) head.append(words("small", `${data.runs[i]} `));
      head.append(badge(one, row));
      if (one.cut) head.append(" ", make("span", "cut off", "mark"));
      line.append(head);
      if (one.said !== undefined) line.append(one.said.trim() ? words("q", one.said) : make("i", "empty"));
      if (one.why) {
        const why = make("details");
        why.append(make("summary", one.state === "unanswered" ? "the error" : row.choices ? "how it was read" : "the judge's words"));
        why.append(words("pre", one.why));
        line.append(why);
      }
      box.append(line);
    });
    if (row.context !== undefined) {
      const told = make("details");
      told.append(make("summary", "what is told of the clip"));
      told.addEventListener("toggle", () => {
        if (told.open && told.children.length < 2) told.append(words("pre", data.contexts[row.context]));
      });
      box.append(told);
    }
    return box;
  };

  const badge = (one, row) => {
    if (one.state === "ok") return make("b", `score ${one.score.toFixed(2)}`);
    const text = one.state === "empty" ? "empty answer" : one.state;
    const score = row.choices || one.score === undefined ? "" : `, score ${one.score.toFixed(2)}`;
    return make("span", `${text}${score}`, `mark ${one.state}`);
  };

  run.addEventListener("change", states);
  for (const input of [run, type, state, sort]) input.addEventListener("change", find);
  for (const input of [low, high, search]) input.addEventListener("input", find);
  more.addEventListener("click", grow);
  at("by-run").closest("label").hidden = !several;
  at("by-type").closest("label").hidden = data.types.length < 2;
  const choices = data.rows.some((row) => row.choices);
  for (const input of [low, high]) input.closest("label").hidden = choices;
  sort.closest("label").hidden = choices && !several;
  for (const one of [...sort.options]) {
    if ((one.value === "apart" && !several) || (choices && ["lowest", "highest"].includes(one.value))) one.remove();
  }
  at("browser").hidden = false;
  states();
  find();
})();
