// Turns the textarea of a workflow's form into an editor, on the site and in the admin: checks while somebody types,
// completes, and asks before typed text is lost. Without this script the textarea works as it is.
(function () {
  "use strict";

  const WAIT_MS = 350;
  const PATIENCE_MS = 3000;
  const AGAIN_MS = 5000;
  const area = document.querySelector("textarea[data-editor=yaml]");
  if (!area || !window.ace) return;
  const form = area.form;
  const side = document.querySelector("[data-editor-side]");
  const state = document.getElementById("editor-state");
  const slugField = form.elements.slug;

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
  area.hidden = true;
  area.closest(".form-row")?.classList.add("has-editor");

  const editor = ace.edit(holder, {
    mode: "ace/mode/yaml",
    theme: "ace/theme/runsight",
    value: area.value,
    tabSize: 2,
    useSoftTabs: true,
    useWorker: false, // the server's validator marks the errors; a second opinion would hide them
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

  // Checking
  const Range = ace.require("ace/range").Range;
  let timer = 0;
  let markers = [];

  async function check() {
    clearTimeout(timer);
    const late = setTimeout(() => unchecked("The server does not answer."), PATIENCE_MS);
    const body = new FormData();
    body.set("yaml", editor.getValue());
    body.set("slug", slugField ? slugField.value : side.dataset.slug);
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    try {
      const answer = await runsight.swap(side.dataset.check, { body, into: "editor-state" });
      if (!answer) return; // a newer check is on its way
      document.getElementById("editor-graph").classList.toggle("is-old", !answer.querySelector("#editor-graph[data-fresh]"));
      mark();
    } catch (error) {
      unchecked(error.message);
      if (!error.isAnswer && !error.isFinal) timer = setTimeout(check, AGAIN_MS);
    } finally {
      clearTimeout(late);
    }
  }

  function checkSoon() {
    clearTimeout(timer);
    timer = setTimeout(check, WAIT_MS);
  }

  function mark() {
    const errors = [...state.querySelectorAll("[data-line]")];
    const rows = errors.map((error) => Number(error.dataset.line) - 1);
    editor.session.setAnnotations(errors.map((error, n) => ({ row: rows[n], text: error.textContent, type: "error" })));
    markers.forEach((marker) => editor.session.removeMarker(marker));
    markers = [...new Set(rows)].map((row) =>
      editor.session.addMarker(new Range(row, 0, row, 1), "editor-error", "fullLine"),
    );
  }

  // What the panel said was about an earlier text.
  function warn(text) {
    const note = document.createElement("p");
    note.className = "editor-state";
    note.dataset.tone = "warn";
    const again = document.createElement("button");
    Object.assign(again, { type: "button", className: "button button--small", textContent: "Check it again" });
    again.addEventListener("click", check);
    note.append(`${text} Your text is still here. `, again);
    state.replaceChildren(note);
  }
  const unchecked = (why) => warn(`Not checked. ${why}`);

  side.addEventListener("click", (event) => {
    const link = event.target.closest("[data-line]");
    if (!link) return;
    event.preventDefault();
    editor.gotoLine(Number(link.dataset.line), 0);
    editor.textInput.getElement().focus();
  });
  editor.session.on("change", () => {
    area.value = editor.getValue();
    checkSoon();
  });
  slugField?.addEventListener("input", checkSoon);

  // Saving and leaving
  const fields = [...form.querySelectorAll("input:not([type=hidden]), textarea")];
  const isTyped = () => "unsaved" in side.dataset || fields.some((field) => field.value !== field.defaultValue);
  let mayLeave = false;
  let isAsking = false;

  // Without a server the browser would leave the text for a page of its own.
  form.addEventListener("submit", async (event) => {
    if (mayLeave) return;
    event.preventDefault();
    if (isAsking) return; // a second click saves nothing twice
    isAsking = true;
    const { submitter } = event;
    const answer = await fetch("/healthz", { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => null);
    isAsking = false;
    mayLeave = Boolean(answer);
    if (mayLeave) return form.requestSubmit(submitter);
    warn("Not saved. The server cannot be reached.");
    runsight.toast("Not saved: the server cannot be reached. Your text is still here.", "error");
  });
  form.querySelector("[data-discard]")?.addEventListener("click", (event) => {
    mayLeave = !event.ctrlKey && !event.metaKey && !event.shiftKey;
  });
  window.addEventListener("pageshow", () => {
    mayLeave = false;
  });
  window.addEventListener("beforeunload", (event) => {
    if (!mayLeave && isTyped()) event.preventDefault();
  });
  editor.commands.addCommand({
    name: "save",
    bindKey: { win: "Ctrl-S", mac: "Command-S" },
    exec: () => form.requestSubmit(form.querySelector("[data-save], [name=_continue]")),
  });

  // Completion
  const keysUnder = (section) => runsight.yamlKeys(editor.session.getDocument().getAllLines(), section);
  const blocks = () => keysUnder("blocks");
  // What the document and the library call by name: blocks, souls, workflows.
  const REFERENCES = {
    soul_ref: () => [...keysUnder("souls"), ...area.dataset.souls.split(" ")],
    workflow_ref: () => area.dataset.workflows.split(" "),
    ...Object.fromEntries(
      ["depends", "entry", "eval_key", "error_route", "inner_block_refs", "pass", "fail", "from", "to"].map((key) => [key, blocks]),
    ),
  };

  function namesAt({ key, isKey, steps }) {
    const last = steps.findLast(({ step }) => step !== "[]")?.step;
    const isInList = steps.at(-1)?.step === "[]";
    const names = REFERENCES[key || (isKey && !isInList ? null : last)]?.() ?? [];
    return [...new Set(names)].filter(Boolean).map((name) => ({ name, kind: "name", doc: "", isNested: false }));
  }

  const completer = {
    identifierRegexps: [/[\w.-]/],
    schema: null,
    getCompletions(current, session, position, prefix, callback) {
      const place = runsight.yamlPlace(session.getDocument().getAllLines(), position.row, position.column);
      if (!place || !this.schema) return callback(null, []);
      const words = [...namesAt(place), ...runsight.fittingWords(this.schema, place)];
      callback(null, words.map(({ name, kind, doc, isNested }, index) => ({
        caption: name,
        value: name + (place.isKey && kind === "key" ? (isNested ? ":" : ": ") : ""),
        meta: kind,
        score: words.length - index,
        docText: doc ? `${name}\n\n${doc}` : "",
      })));
    },
  };
  editor.completers = [completer];
  fetch(side.dataset.schema, { headers: { Accept: "application/json" } })
    .then((response) => (response.ok ? response.json() : null))
    .then((schema) => {
      completer.schema = schema;
    })
    .catch(() => {}); // one writes on without completion

  mark();
  if (area.value !== area.defaultValue) check(); // typed before this script came, or kept by the browser over a reload
})();
