// Where in a document the cursor stands, and what the JSON Schema allows there. No editor and no DOM: plain functions.
(function () {
  "use strict";

  const runsight = (window.runsight = window.runsight || {});

  function parse(line) {
    const [, space, dashes, rest] = /^(\s*)((?:-(?:\s+|$))*)(.*)$/.exec(line);
    const found = /^["']?([\w.-]+)["']?\s*:(?:\s+(.*))?$/.exec(rest);
    return {
      isBlank: !rest.trim() && !dashes,
      isComment: rest.startsWith("#"),
      isItem: dashes !== "",
      dashIndent: space.length + Math.max(dashes.trimEnd().length - 1, 0),
      indent: space.length + dashes.length,
      key: found ? found[1] : null,
      value: found && found[2] ? found[2].trim() : "",
      rest,
    };
  }

  // The brackets still open at the end of a text, each with what stands before and in it.
  function openBrackets(text) {
    const open = [];
    let quote = "";
    for (let i = 0; i < text.length; i++) {
      const letter = text[i];
      if (quote) {
        if (letter === quote) quote = "";
      } else if (letter === '"' || letter === "'") quote = letter;
      else if (letter === "#" && (i === 0 || text[i - 1] === " ")) break;
      else if (letter === "{" || letter === "[") open.push({ letter, at: i });
      else if (letter === "}" || letter === "]") open.pop();
    }
    return open;
  }

  // The other lines of the mapping whose keys stand at `indent` around `row`, parsed: those above it, then those below.
  function* siblings(lines, row, indent) {
    const { isItem, indent: own } = parse(lines[row]);
    for (const step of isItem && own === indent ? [1] : [-1, 1]) {
      for (let r = row + step; r >= 0 && r < lines.length; r += step) {
        const line = parse(lines[r]);
        if (line.isBlank || line.isComment) continue;
        const isFirstOfItem = line.isItem && line.indent === indent;
        if (line.indent < indent || (step === 1 && isFirstOfItem)) break;
        if (line.indent === indent && line.key) yield line;
        if (isFirstOfItem) break;
      }
    }
  }

  // The value of the `type` of the mapping that a line belongs to.
  function typeAround(lines, row, indent) {
    for (const line of [parse(lines[row]), ...siblings(lines, row, indent)])
      if (line.indent === indent && line.key === "type" && line.value) return bare(line.value);
    return null;
  }

  function bare(value) {
    return value.replace(/\s+#.*$/, "").replace(/^["']|["']$/g, "").trim();
  }

  // From the top to the mapping that holds the cursor's line: [{step, type}], or null inside a text block.
  function parentsOf(lines, row, current) {
    const steps = [];
    let limit = current.indent;
    let inList = false;
    const note = (step, r, indent) => steps.unshift({ step, type: typeAround(lines, r, indent) });
    if (current.isItem) {
      limit = current.dashIndent;
      inList = true;
      steps.unshift({ step: "[]", type: null });
    }
    for (let r = row - 1; r >= 0 && (limit > 0 || inList); r--) {
      const line = parse(lines[r]);
      if (line.isBlank || line.isComment) continue;
      if (!inList && line.isItem && line.indent === limit) {
        steps.unshift({ step: "[]", type: null });
        [limit, inList] = [line.dashIndent, true];
      } else if (line.key && (line.indent < limit || (inList && !line.isItem && line.indent <= limit))) {
        if (/^[|>]/.test(line.value)) return null;
        note(line.key, r, line.indent);
        [limit, inList] = [line.indent, false];
        if (line.isItem) {
          steps.unshift({ step: "[]", type: null });
          [limit, inList] = [line.dashIndent, true];
        }
      }
    }
    return steps;
  }

  // {steps, type, isKey, key, written}: what the cursor is about to complete.
  runsight.yamlPlace = function (lines, row, column) {
    const before = lines[row].slice(0, column);
    const line = parse(before);
    if (line.isComment) return null;
    const open = openBrackets(before);
    if (!open.length) {
      const indent = line.indent;
      const steps = parentsOf(lines, row, line);
      if (!steps) return null;
      const type = typeAround(lines, row, indent);
      const isKey = line.key === null;
      return { steps, type, isKey, key: line.key, written: new Set([...siblings(lines, row, indent)].map((one) => one.key)) };
    }
    const steps = parentsOf(lines, row, parse(before.slice(0, open[0].at)));
    if (!steps) return null;
    return inFlow(before, open, steps, typeAround(lines, row, line.indent));
  };

  function inFlow(before, open, steps, outerType) {
    let start = 0;
    let type = outerType;
    for (const bracket of open) {
      const key = /["']?([\w.-]+)["']?\s*:\s*$/.exec(before.slice(start, bracket.at));
      if (key) steps.push({ step: key[1], type });
      if (bracket.letter === "[") steps.push({ step: "[]", type: null });
      start = bracket.at + 1;
      type = flowType(before.slice(start));
    }
    const part = before.slice(start).split(",").pop();
    const pair = /^\s*["']?([\w.-]+)["']?\s*:\s/.exec(part + " ");
    const isList = open[open.length - 1].letter === "[";
    const written = new Set([...before.slice(start).matchAll(/([\w.-]+)\s*:/g)].map((found) => found[1]));
    return { steps, type, isKey: !pair && !isList, key: pair && !isList ? pair[1] : null, written };
  }

  function flowType(text) {
    const found = /(?:^|,)\s*["']?type["']?\s*:\s*["']?([\w-]+)/.exec(text);
    return found ? found[1] : null;
  }

  // The names directly under a section of the top level.
  runsight.yamlKeys = function (lines, section) {
    const start = lines.findIndex((line) => line.startsWith(`${section}:`)) + 1;
    if (!start) return [];
    const end = lines.findIndex((line, row) => row >= start && /^\S/.test(line));
    const keys = lines.slice(start, end < 0 ? undefined : end).map(parse).filter((line) => line.key && !line.isItem);
    return keys.filter((line) => line.indent === keys[0].indent).map((line) => line.key);
  };

  // Every plain schema a node stands for, with `if` decided by the mapping's type.
  function expand(root, node, type, depth = 0) {
    if (!node || typeof node !== "object" || depth > 12) return [];
    const more = (one) => expand(root, one, type, depth + 1);
    const found = [node];
    if (node.$ref) found.push(...more(node.$ref.slice(2).split("/").reduce((at, name) => at && at[name], root)));
    for (const list of [node.allOf, node.anyOf, node.oneOf]) if (list) found.push(...list.flatMap(more));
    if (node.if) {
      const wanted = node.if.properties && node.if.properties.type && node.if.properties.type.enum;
      if (wanted && wanted.includes(type)) found.push(...more(node.then));
    }
    return found;
  }

  function stepInto(root, nodes, step, type) {
    return nodes.flatMap((node) => expand(root, node, type)).flatMap((node) => {
      if (step === "[]") return node.items ? [node.items] : [];
      if (node.properties && node.properties[step]) return [node.properties[step]];
      const others = Object.values(node.patternProperties || {});
      if (node.additionalProperties && typeof node.additionalProperties === "object") others.push(node.additionalProperties);
      return others;
    });
  }

  function withoutDoubles(entries) {
    const known = new Map();
    for (const entry of entries) {
      const before = known.get(entry.name);
      if (!before || (!before.doc && entry.doc)) known.set(entry.name, entry);
    }
    return [...known.values()];
  }

  // [{name, kind, doc, isNested}]: the keys or values that fit at a place.
  runsight.fittingWords = function (schema, place) {
    let nodes = [schema];
    for (const { step, type } of place.steps) nodes = stepInto(schema, nodes, step, type);
    const here = nodes.flatMap((node) => expand(schema, node, place.type));
    if (place.isKey) {
      const keys = here.flatMap((node) => Object.entries(node.properties || {}));
      const entries = keys.map(([name, about]) => ({ name, kind: "key", doc: about.description || "", isNested: isNested(schema, about) }));
      return withoutDoubles(entries).filter((entry) => !place.written.has(entry.name));
    }
    const valued = place.key ? stepInto(schema, nodes, place.key, place.type) : nodes;
    const values = valued.flatMap((node) => expand(schema, node, null));
    return withoutDoubles(values.flatMap((node) => wordsOf(node, here, place.key)));
  };

  function isNested(root, node) {
    return expand(root, node, null).some((one) => one.properties || one.items || one.type === "object" || one.type === "array");
  }

  function wordsOf(node, here, key) {
    const words = [...(node.enum || []), ...("const" in node ? [node.const] : [])];
    if ([].concat(node.type || []).includes("boolean") && !node.enum) words.push(true, false);
    if (node.default !== undefined && node.default !== null && typeof node.default !== "object") words.push(node.default);
    return words
      .filter((word) => word !== null)
      .map((word) => ({ name: String(word), kind: "value", doc: key === "type" ? docOfType(here, word) : "", isNested: false }));
  }

  function docOfType(here, word) {
    for (const node of here) {
      const wanted = node.if && node.if.properties && node.if.properties.type && node.if.properties.type.enum;
      if (wanted && wanted.includes(word) && node.then) return node.then.description || "";
    }
    return "";
  }
})();
