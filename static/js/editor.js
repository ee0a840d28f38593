// Turns the workflow form's textarea into an editor. Without this script the textarea works as it is.
(function () {
  "use strict";

  const WAIT_MS = 350;
  const area = document.querySelector("textarea[data-editor=yaml]");
  if (!area || !window.ace) return;
  const form = area.form;
  const side = document.querySelector("[data-editor-side]");
  const state = side.querySelector("[data-editor-state]");
  const list = side.querySelector("[data-editor-faults]");
  const graph = side.querySelector("[data-editor-graph]");
  const slugField = form.querySelector("[name=slug]");
  const readSlug = () => (slugField ? slugField.value : document.querySelector(".field-slug .readonly").textContent.trim());

  // Styles come from ace.css and editor.css, so the page needs no inline ones.
  ace.config.set("useStrictCSP", true);
  ace.config.set("loadWorkerFromBlob", false);
  ace.define("ace/theme/runsight", ["require", "exports"], (require, exports) => {
    exports.isDark = false;
    exports.cssClass = "ace-runsight";
    exports.cssText = "";
  });

  const frame = document.createElement("div");
  frame.className = "editor-frame";
  const holder = document.createElement("div");
  holder.className = "editor-text";
  frame.append(holder);
  area.after(frame);
  frame.append(side);
  side.hidden = false;
  area.hidden = true;
  area.closest(".form-row").classList.add("has-editor");

  const editor = ace.edit(holder, {
    mode: "ace/mode/yaml",
    theme: "ace/theme/runsight",
    value: area.value,
    tabSize: 2,
    useSoftTabs: true,
    useWorker: false, // the server's validator marks the faults; a second opinion would hide them
    showPrintMargin: false,
    enableBasicAutocompletion: true,
    enableLiveAutocompletion: true,
    enableKeyboardAccessibility: true,
    textInputAriaLabel: "Document",
    fontSize: 13,
    scrollPastEnd: 0.2,
  });
  editor.session.setNewLineMode("unix");
  editor.clearSelection();
  // The next key of a list's item stands under its first one.
  editor.session.getMode().getNextLineIndent = (state, line, tab) => {
    const [, space, dashes, rest] = /^(\s*)((?:-\s+)*)(.*)$/.exec(line);
    const isPair = /^["']?[\w.-]+["']?\s*:(?:\s|$)/.test(rest);
    const isOpen = /(?::|[|>][+-]?)\s*$/.test(rest);
    return space + (isPair ? " ".repeat(dashes.length) : "") + (isOpen ? tab : "");
  };
  holder.env = { editor }; // for whoever looks at the page from a console

  const Range = ace.require("ace/range").Range;
  const initial = area.value.replace(/\r\n/g, "\n");
  let isSending = false;
  let timer = 0;
  let asking = null;
  let markers = [];

  async function check() {
    if (asking) asking.abort();
    const mine = (asking = new AbortController());
    const body = new FormData();
    body.set("yaml", editor.getValue());
    body.set("slug", readSlug());
    body.set("csrfmiddlewaretoken", form.querySelector("[name=csrfmiddlewaretoken]").value);
    let answer;
    try {
      const response = await fetch(area.dataset.check, { method: "POST", body, signal: mine.signal, headers: { Accept: "application/json" } });
      if (!response.ok || response.redirected) throw new Error(String(response.status));
      answer = await response.json();
    } catch (error) {
      if (error.name !== "AbortError") say("The server does not answer; your text is still here, unchecked.", "bad");
      return;
    }
    if (mine === asking) show(answer);
  }

  function say(text, tone) {
    state.textContent = text;
    state.dataset.tone = tone;
  }

  function show({ faults, graph: drawing }) {
    const count = faults.length;
    say(count ? `${count} fault${count === 1 ? "" : "s"}: this cannot be saved yet.` : "No faults.", count ? "bad" : "good");
    list.replaceChildren(...faults.map(entryOf));
    const placed = faults.filter((fault) => fault.line);
    editor.session.setAnnotations(placed.map((fault) => ({ row: fault.line - 1, column: 0, text: fault.text, type: "error" })));
    markers.forEach((marker) => editor.session.removeMarker(marker));
    markers = [...new Set(placed.map((fault) => fault.line - 1))].map((row) =>
      editor.session.addMarker(new Range(row, 0, row, 1), "editor-fault", "fullLine"),
    );
    if (drawing) graph.innerHTML = drawing; // drawn and escaped by our server
    graph.classList.toggle("is-old", !drawing);
  }

  function entryOf(fault) {
    const entry = document.createElement("li");
    if (!fault.line) {
      entry.textContent = fault.text;
      return entry;
    }
    const link = document.createElement("a");
    link.href = "#id_yaml";
    link.textContent = fault.text;
    link.dataset.line = fault.line;
    entry.append(link);
    return entry;
  }

  list.addEventListener("click", (event) => {
    const link = event.target.closest("[data-line]");
    if (!link) return;
    event.preventDefault();
    editor.gotoLine(Number(link.dataset.line), 0);
    editor.textInput.getElement().focus();
  });

  function later() {
    window.clearTimeout(timer);
    timer = window.setTimeout(check, WAIT_MS);
  }

  editor.session.on("change", () => {
    area.value = editor.getValue();
    later();
  });
  if (slugField) slugField.addEventListener("input", later);
  form.addEventListener("submit", () => {
    isSending = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (!isSending && editor.getValue() !== initial) event.preventDefault();
  });
  editor.commands.addCommand({
    name: "save",
    bindKey: { win: "Ctrl-S", mac: "Command-S" },
    exec: () => form.requestSubmit(form.querySelector("[name=_continue]")),
  });

  const completer = {
    identifierRegexps: [/[\w.-]/],
    schema: null,
    getCompletions(current, session, position, prefix, callback) {
      const place = runsight.yamlPlace(session.getDocument().getAllLines(), position.row, position.column);
      if (!place || !this.schema) return callback(null, []);
      const words = [...namesAt(place), ...runsight.fittingWords(this.schema, place)];
      callback(null, words.map((word, index) => offered(word, place, words.length - index)));
    },
  };

  function offered(word, place, score) {
    const after = place.isKey && word.kind === "key" ? (word.isNested ? ":" : ": ") : "";
    return { caption: word.name, value: word.name + after, meta: word.kind, score, docText: word.doc ? `${word.name}\n\n${word.doc}` : "" };
  }

  // What the document and the library call by name: blocks, souls, workflows.
  const REFERENCES = {
    soul_ref: () => [...keysUnder("souls"), ...area.dataset.souls.split(" ")],
    workflow_ref: () => area.dataset.workflows.split(" "),
    depends: () => keysUnder("blocks"),
    entry: () => keysUnder("blocks"),
    eval_key: () => keysUnder("blocks"),
    error_route: () => keysUnder("blocks"),
    inner_block_refs: () => keysUnder("blocks"),
    pass: () => keysUnder("blocks"),
    fail: () => keysUnder("blocks"),
    from: () => keysUnder("blocks"),
    to: () => keysUnder("blocks"),
  };

  function namesAt(place) {
    const last = place.steps.filter(({ step }) => step !== "[]").pop();
    const find = REFERENCES[place.key || (place.isKey ? (endsInList(place) ? last && last.step : null) : last && last.step)];
    if (!find) return [];
    return [...new Set(find())].filter(Boolean).map((name) => ({ name, kind: "name", doc: "", isNested: false }));
  }

  function endsInList(place) {
    return place.steps.length > 0 && place.steps[place.steps.length - 1].step === "[]";
  }

  function keysUnder(section) {
    const lines = editor.session.getDocument().getAllLines();
    const start = lines.findIndex((line) => line.startsWith(`${section}:`));
    const names = [];
    for (let row = start + 1; start >= 0 && row < lines.length && !/^\S/.test(lines[row]); row++) {
      const found = /^ {1,4}([\w-]+):/.exec(lines[row]);
      if (found && (!names.length || lines[row].search(/\S/) === names.indent)) {
        if (!names.length) names.indent = lines[row].search(/\S/);
        names.push(found[1]);
      }
    }
    return names;
  }

  editor.completers = [completer];
  fetch(area.dataset.schema, { headers: { Accept: "application/json" } })
    .then((response) => (response.ok ? response.json() : null))
    .then((schema) => {
      completer.schema = schema;
    })
    .catch(() => say("Completion is not available: the schema could not be loaded.", "warn"));
  check();
})();
