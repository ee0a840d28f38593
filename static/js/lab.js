// The assertion lab: checks while you type, inserts examples, and shows a backtest as it goes.
(() => {
  const { swap, take, toast } = window.runsight;
  const form = document.getElementById("lab");
  const undo = document.getElementById("lab-undo");
  const LONG = 50000; // of a longer text the browser takes seconds to find the direction; as evals_app.pages.lab.trial.LONG
  const QUIET_MS = 250; // a pause in typing
  const FIRST_PAUSE = 2000; // between tries to reach the server
  const LONGEST_PAUSE = 30000;
  const LOADED = ["output", "assertions", "cost_usd", "latency_ms"];
  let timer = 0;
  let pause = FIRST_PAUSE;
  let before = []; // what a block's own text and assertions replaced
  let testing = null; // the latest backtest

  function post(action, into) {
    const body = new FormData(form);
    body.set("action", action);
    body.set("shown", document.getElementById("lab-rows").childElementCount);
    return swap(form.dataset.parts, { body, into });
  }

  async function evaluate() {
    clearTimeout(timer);
    try {
      if (!await post("try", "lab-results")) return;
      pause = FIRST_PAUSE;
      for (const note of form.querySelectorAll("[data-error-of]")) form.elements[note.dataset.errorOf].ariaInvalid = String(note.textContent.trim() !== "");
    } catch (error) {
      const summary = document.getElementById("lab-summary");
      summary.textContent = error.message;
      summary.dataset.stale = "";
      if (error.isAnswer || error.isFinal) return;
      soon(pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }

  function soon(wait = QUIET_MS) {
    clearTimeout(timer);
    timer = setTimeout(evaluate, wait);
    form.elements.output.dir = form.elements.output.value.length > LONG ? "ltr" : "auto";
  }

  function insert(id) {
    const yaml = form.elements.assertions;
    const text = yaml.value.trimEnd();
    yaml.value = `${text ? `${text}\n` : ""}${document.getElementById(id).textContent.trim()}\n`;
    yaml.focus();
    yaml.setSelectionRange(yaml.value.length, yaml.value.length);
    yaml.scrollTop = yaml.scrollHeight;
    evaluate();
  }

  function selectLine(number) {
    const yaml = form.elements.assertions;
    const lines = yaml.value.split("\n");
    const start = lines.slice(0, number - 1).reduce((sum, line) => sum + line.length + 1, 0);
    yaml.focus();
    yaml.setSelectionRange(start, start + (lines[number - 1] ?? "").length);
  }

  function offerBlocks(slug) {
    const url = new URL(form.dataset.blocks, location);
    url.searchParams.set("workflow", slug);
    swap(url, { into: "lab-block" }).catch((error) => toast(`The blocks of this workflow could not be read. ${error.message}`, "error"));
  }

  // How far it is, again and again, and at last the report: each line is HTML of its own.
  async function backtest() {
    testing?.abort();
    const mine = (testing = new AbortController());
    const button = document.getElementById("lab-backtest");
    button.ariaBusy = "true";
    try {
      const response = await fetch(form.dataset.backtest, { method: "POST", body: new FormData(form), signal: mine.signal });
      if (!response.ok) throw new Error(`The server answered ${response.status}.`);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        const lines = (rest + piece.value).split("\n");
        rest = lines.pop();
        for (const line of lines) take(JSON.parse(line).html);
      }
      if (!document.getElementById("lab-progress").hidden) throw new Error("The server stopped before the backtest was done. Try again, perhaps with fewer outputs.");
    } catch (error) {
      if (mine.signal.aborted) return;
      toast(error instanceof TypeError ? "The connection was lost before the backtest was done." : error.message, "error");
      document.getElementById("lab-progress").hidden = true;
    }
    button.ariaBusy = null;
  }

  const texts = () => LOADED.map((name) => form.elements[name].value);

  async function load() {
    const were = texts();
    try {
      if (!await post("load", "lab-fields")) return;
    } catch (error) {
      toast(`This block could not be loaded. ${error.message}`, "error");
      return;
    }
    if (!form.elements.workflow.value || !form.elements.block.value) return; // the report says so
    before = were;
    undo.hidden = false;
    toast(`The text and the assertions are now those of ${form.elements.block.value}.`, "success");
  }

  undo.addEventListener("click", () => {
    const after = texts();
    LOADED.forEach((name, index) => { form.elements[name].value = before[index]; });
    before = after;
    evaluate();
  });

  const actions = { backtest, load, try: evaluate };
  form.addEventListener("input", (event) => { if (event.target.matches("[data-live]")) soon(); });
  form.addEventListener("change", (event) => { if (event.target.name === "workflow") offerBlocks(event.target.value); });
  form.addEventListener("submit", (event) => {
    const action = actions[event.submitter?.value ?? "try"];
    if (!action) return;
    event.preventDefault();
    action();
  });
  window.addEventListener("online", () => { if (pause > FIRST_PAUSE) evaluate(); });
  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("[data-insert], [data-line]");
    if (button?.dataset.insert) insert(button.dataset.insert);
    if (button?.dataset.line) selectLine(Number(button.dataset.line));
  });
  for (const button of document.querySelectorAll("[data-insert]")) button.hidden = false;

  // What was typed or picked before this script came, or kept by the browser over a reload, is not what the server checked.
  const picked = form.elements.workflow;
  if ([...form.querySelectorAll("[data-live]")].some((field) => field.value !== field.defaultValue)) evaluate();
  if (picked.value && !picked.selectedOptions[0].defaultSelected) offerBlocks(picked.value);
})();
