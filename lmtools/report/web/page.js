
"use strict";
(() => {
  const CHUNK = 25; // utterances put into the page at once
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const labels = new Map(data.systems);
  const LABEL_OF = { all: "all", better: "better", worse: "worse", same: "same errors", changed: "words differ", words: "words of the glossary", faults: "missed or false alarm" };
  const state = { set: "", system: "", base: "@first", show: "all", sort: "change", colour: "changes", q: "" };
  const some = (holds) => data.sets.some((set) => set.utts.some(holds));
  const shaded = some((utt) => Object.keys(utt[4]).length);
  const phrased = some((utt) => utt[5]);
  const COLOURS = ["changes", ...(shaded ? ["confidence"] : []), ...(phrased ? ["words"] : [])];
  let rows = []; // what is shown: {utt, place, mine, theirs, length}
  let drawn = 0;
  let current = -1;

  const element = (tag, kind, text) => {
    const node = document.createElement(tag);
    if (kind) node.className = kind;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const words = (text) => (text ? text.split(" ") : []);
  const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

  // The steps of an alignment: operation C, S, D or I, reference word, hypothesis word.
  const steps = (reference, [text, operations]) => {
    const refs = words(reference);
    const hyps = words(text);
    let r = 0;
    let h = 0;
    return Array.from(operations, (op) => ({ op, ref: op === "I" ? null : refs[r++], hyp: op === "D" ? null : hyps[h++] }));
  };

  const errors = ([, operations]) => operations.length - operations.split("C").length + 1;

  // What a hypothesis says at each place of the reference: even keys hold insertions before a word, odd keys the word itself.
  const places = (alignment) => {
    const found = new Map();
    let place = 0;
    for (const step of alignment) {
      if (step.op === "I") {
        found.set(place, `${found.get(place) ?? ""} ${step.hyp}`);
      } else {
        found.set(place + 1, step.op === "D" ? "" : step.hyp);
        place += 2;
      }
    }
    return found;
  };

  // How a step compares with the other system: nothing, right (error gone), wrong (error new) or other.
  const comparison = (step, place, other) => {
    if (step.op === "I") return other.get(place) === undefined ? "wrong" : other.get(place).split(" ").includes(step.hyp) ? "" : "other";
    const theirs = other.get(place + 1);
    const mine = step.op === "D" ? "" : step.hyp;
    if (theirs === mine) return "";
    return mine === step.ref ? "right" : theirs === step.ref ? "wrong" : "other";
  };

  const TITLES = { S: (step) => `instead of: ${step.ref}`, I: () => "inserted", D: () => "deleted" };
  const TAGS = { C: ["span", ""], S: ["span", "sub"], I: ["ins", "ins"], D: ["del", "del"] };

  const SHADES = [30, 50, 70, 90]; // hundredths below which a word has shade 0, 1, 2, 3

  // What marks steps: functions of a step, its word of the reference and its word of the hypothesis (from 0), which return class and title of its mark, or nothing.
  const byChange = (other) => (step, ref) => {
    const kind = comparison(step, 2 * ref, other);
    return kind ? [kind, ""] : undefined;
  };
  const byConfidence = (shares) => (step, _, hyp) => {
    if (step.hyp === null) return undefined;
    const shade = SHADES.findIndex((limit) => shares[hyp] < limit);
    return [shade < 0 ? "sure" : `sure sure${shade}`, `confidence ${(shares[hyp] / 100).toFixed(2)}`];
  };
  const VERDICTS = { found: "right", missed: "missed", false: "false alarm" };
  const phraseAt = (spans, place, wrong) => {
    const span = spans.find(([start, end]) => start <= place && place < end);
    const kind = span?.[3] ? wrong : "found";
    return span && [kind, `${VERDICTS[kind]}: ${span[2]}`];
  };
  const byReference = ([spans]) => (_, ref) => phraseAt(spans, ref, "missed");
  const byPhrase = ([ofRef, ofHyp]) => (step, ref, hyp) => {
    const mine = step.hyp === null ? undefined : phraseAt(ofHyp, hyp, "false");
    return mine ?? (step.ref === null ? undefined : phraseAt(ofRef.filter((span) => span[3]), ref, "missed"));
  };

  // A hypothesis with its errors marked, and its steps by one of the functions above where one is given.
  const marked = (node, alignment, mark) => {
    let ref = 0;
    let hyp = 0;
    alignment.forEach((step, index) => {
      const [tag, kind] = TAGS[step.op];
      const [change, title] = mark?.(step, ref, hyp) ?? [];
      if (index) node.append(" ");
      let word = document.createTextNode(step.hyp ?? step.ref);
      if (kind) {
        word = element(tag, kind, step.hyp ?? step.ref);
        word.title = TITLES[step.op](step);
      }
      if (change) {
        const outer = element("mark", change);
        if (title) outer.title = title;
        outer.append(word);
        word = outer;
      }
      node.append(word);
      if (step.op !== "I") ref++;
      if (step.op !== "D") hyp++;
    });
    return node;
  };

  const verdict = ({ mine, theirs }) => {
    if (mine === theirs) return element("span", "same", `${plural(mine, "error")} in both`);
    return element("span", mine < theirs ? "better" : "worse", `${theirs} \u2192 ${plural(mine, "error")} (${mine < theirs ? "better" : "worse"})`);
  };

  const line = (list, name, filled) => list.append(element("dt", "", name), filled);

  const everySystem = (box, utt) => {
    const [, reference, hyps, choices] = utt;
    const list = element("dl", "lines");
    hyps.forEach((hyp, index) => {
      const names = data.systems.filter((_, system) => choices[system] === index).map(([, label]) => label);
      const mark = state.colour === "words" ? byPhrase(utt[5][index]) : undefined;
      line(list, `${names.join(" \u00b7 ")} (${errors(hyp)})`, marked(element("dd"), steps(reference, hyp), mark));
    });
    box.append(list);
  };

  const card = (row) => {
    const [id, reference, hyps, choices] = row.utt;
    const item = element("li", "utt");
    item.tabIndex = -1;
    const head = element("div", "head");
    head.append(element("b", "", id), element("span", "", plural(row.length, "word")), verdict(row));
    const list = element("dl", "lines");
    const base = steps(reference, hyps[row.base]);
    const phrases = state.colour === "words" ? row.utt[5] : undefined;
    const mark = (name, hyp) => {
      if (phrases) return byPhrase(phrases[hyp]);
      const shares = state.colour === "confidence" ? row.utt[4][data.systems.findIndex(([system]) => system === name)] : undefined;
      return shares && byConfidence(shares);
    };
    const said = steps(reference, [reference, "C".repeat(row.length)]);
    line(list, "reference", marked(element("dd", "ref"), said, phrases && byReference(phrases[row.system])));
    line(list, labels.get(state.base), marked(element("dd", "base"), base, mark(state.base, row.base)));
    const change = state.colour === "changes" ? byChange(places(base)) : mark(state.system, row.system);
    line(list, labels.get(state.system), marked(element("dd", "system"), steps(reference, hyps[row.system]), change));
    const details = element("details");
    details.append(element("summary", "", `all systems (${choices.filter((choice) => choice !== null).length})`));
    details.addEventListener("toggle", () => details.childElementCount === 1 && everySystem(details, row.utt));
    item.append(head, list, details);
    return item;
  };

  const FILTERS = {
    all: () => true,
    better: (row) => row.mine < row.theirs,
    worse: (row) => row.mine > row.theirs,
    same: (row) => row.mine === row.theirs,
    changed: (row) => row.system !== row.base,
    ...(phrased && {
      words: (row) => row.utt[5][row.system].flat().length > 0,
      faults: (row) => row.utt[5][row.system].flat().some((span) => span[3]),
    }),
  };
  const SORTS = {
    change: (a, b) => Math.abs(b.mine - b.theirs) - Math.abs(a.mine - a.theirs) || (a.system === a.base) - (b.system === b.base),
    file: (a, b) => a.place - b.place,
    improved: (a, b) => a.mine - a.theirs - (b.mine - b.theirs),
    worsened: (a, b) => b.mine - b.theirs - (a.mine - a.theirs),
    errors: (a, b) => b.mine - a.mine,
    long: (a, b) => b.length - a.length,
    short: (a, b) => a.length - b.length,
  };

  const select = () => {
    const utts = data.sets.find((set) => set.name === state.set).utts;
    const system = data.systems.findIndex(([name]) => name === state.system);
    const base = data.systems.findIndex(([name]) => name === state.base);
    const wanted = state.q.toLowerCase().trim();
    const found = [];
    utts.forEach((utt, place) => {
      const [id, reference, hyps, choices] = utt;
      if (choices[system] === null || choices[base] === null) return;
      const [mine, theirs] = [hyps[choices[system]], hyps[choices[base]]];
      const text = `${id}\n${reference}\n${mine[0]}\n${theirs[0]}`;
      if (wanted && !text.toLowerCase().includes(wanted)) return;
      const length = words(reference).length;
      found.push({ utt, place, system: choices[system], base: choices[base], mine: errors(mine), theirs: errors(theirs), length });
    });
    return { found, of: utts.length };
  };

  const more = () => {
    const part = rows.slice(drawn, drawn + CHUNK).map(card);
    drawn += part.length;
    byId("list").append(...part);
    byId("more").hidden = drawn >= rows.length;
  };

  const update = () => {
    const { found, of } = select();
    rows = found.filter(FILTERS[state.show]).sort((a, b) => SORTS[state.sort](a, b) || a.place - b.place);
    for (const [name, filter] of Object.entries(FILTERS)) {
      byId(`count-${name}`).textContent = `${LABEL_OF[name]} ${found.filter(filter).length}`;
    }
    byId("count").textContent = `${rows.length} of ${plural(of, "utterance")}`;
    byId("utterances").dataset.colour = state.colour;
    byId("list").replaceChildren();
    drawn = 0;
    current = -1;
    more();
    remember();
  };

  // The address keeps the choice, so that a view can be linked.
  const remember = () => {
    const hash = new URLSearchParams(state).toString();
    try {
      history.replaceState(null, "", `#${hash}`);
    } catch {
      // some browsers forbid it for local files; the page works without
    }
  };

  const recall = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    const known = {
      set: data.sets.map((set) => set.name),
      system: [...labels.keys()],
      base: [...labels.keys()],
      show: Object.keys(FILTERS),
      sort: Object.keys(SORTS),
      colour: COLOURS,
    };
    for (const [name, value] of asked) {
      if (name === "q" || known[name]?.includes(value)) state[name] = value;
    }
    return asked.has("q");
  };

  const options = (id, pairs) => {
    byId(id).replaceChildren(...pairs.map(([value, text]) => Object.assign(element("option", "", text), { value })));
  };

  const show = (index) => {
    if (index < 0 || index >= rows.length) return;
    while (drawn <= index) more();
    current = index;
    const item = byId("list").children[index];
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
  };

  const toggle = () => {
    const details = byId("list").children[current]?.querySelector("details");
    if (details) details.open = !details.open;
  };
  const KEYS = {
    j: () => show(current + 1),
    k: () => show(current - 1),
    Enter: toggle,
    "/": () => {
      byId("search").scrollIntoView({ block: "center" });
      byId("search").focus();
    },
  };

  const listen = () => {
    for (const name of ["set", "system", "base", "sort", "colour"]) {
      byId(name).value = state[name];
      byId(name).addEventListener("change", (event) => {
        state[name] = event.target.value;
        update();
      });
    }
    byId("search").value = state.q;
    byId("search").addEventListener("input", (event) => {
      state.q = event.target.value;
      update();
    });
    byId("search").addEventListener("keydown", (event) => event.key === "Escape" && event.target.blur());
    document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
    byId("more").addEventListener("click", more);
    byId("list").addEventListener("focusin", (event) => {
      current = Array.prototype.indexOf.call(byId("list").children, event.target.closest(".utt"));
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest?.("input, select, button, summary, a");
      if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
      event.preventDefault();
      KEYS[event.key]();
    });
    if ("IntersectionObserver" in window) {
      new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && drawn < rows.length && more(), { rootMargin: "800px" }).observe(byId("more"));
    }
  };

  const filters = () => {
    for (const name of Object.keys(FILTERS)) {
      const choice = Object.assign(element("input"), { type: "radio", name: "show", value: name, checked: name === state.show });
      choice.addEventListener("change", () => {
        state.show = name;
        update();
      });
      const label = element("label");
      label.append(choice, Object.assign(element("span"), { id: `count-${name}` }));
      byId("show").append(label);
    }
  };

  byId("colours").hidden = COLOURS.length === 1;
  for (const option of [...byId("colour").options]) {
    if (!COLOURS.includes(option.value)) option.remove();
  }
  state.set = data.sets[0].name;
  state.system = data.systems.at(-1)[0];
  const asked = recall();
  options("set", data.sets.map(({ name }) => [name, name]));
  options("system", data.systems);
  options("base", data.systems);
  filters();
  listen();
  update();
  if (asked) byId("utterances").scrollIntoView();
})();
