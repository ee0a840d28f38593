// The assertion lab: judges while you type, inserts examples, and shows a backtest as it goes.
(() => {
  const form = document.getElementById("lab");
  const output = document.getElementById("lab-output");
  const yaml = document.getElementById("lab-assertions");
  const results = document.querySelector(".lab-results");
  const rows = document.getElementById("lab-rows");
  const summary = document.getElementById("lab-summary");
  const none = document.getElementById("lab-none");
  const faults = document.getElementById("lab-faults");
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const LONG = 50000; // of a longer text the browser takes seconds to find the direction; as evals_app.lab.LONG
  const QUIET_MS = 250; // a pause in typing
  const PATIENCE = [2000, 30000]; // between tries to reach the server: the first, the longest
  let timer = 0;
  let patience = PATIENCE[0];
  let trying = null; // AbortController of the latest request
  let looking = null;

  const clone = (kind, word) => document.querySelector(`template[data-${kind}="${word}"]`).content.firstElementChild.cloneNode(true);
  const word = (one) => (one.error ? "error" : one.passed ? "passed" : "failed");
  // As workflows_app.formats.score: only a perfect score reads 1.00 and only none reads 0.00.
  const score = (value) => (value > 0.99 && value < 1 ? "0.99" : value > 0 && value < 0.01 ? "0.01" : value.toFixed(2));
  const number = (name) => {
    const text = form.elements[name].value.trim();
    const isGood = text === "" || (Number(text) >= 0 && Number(text) < Infinity);
    form.elements[name].setAttribute("aria-invalid", String(!isGood));
    form.elements[name].nextElementSibling.hidden = isGood;
    return text === "" || !isGood ? null : Number(text);
  };

  function row(one) {
    const item = clone("row", word(one));
    const texts = { type: one.type || "?", reason: one.reason, metric: one.metric ?? "", weight: String(one.weight), score: score(one.score) };
    for (const [slot, text] of Object.entries(texts)) item.querySelector(`[data-slot="${slot}"]`).textContent = text;
    item.querySelector('[data-slot="metric"]').parentElement.hidden = !one.metric;
    return item;
  }

  // A sentence whose `words in backticks` are code, as on the server; a lone backtick is one.
  const inlineCode = (text) => text.split(/`([^`]*)`/).map((part, index) => {
    if (index % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });

  function showFaults(list) {
    yaml.setAttribute("aria-invalid", String(list.length > 0));
    faults.replaceChildren(...list.map((fault) => {
      const item = document.createElement("li");
      if (fault.line) {
        const jump = document.createElement("button");
        jump.type = "button";
        jump.className = "link";
        jump.dataset.line = fault.line;
        jump.textContent = `Line ${fault.line}`;
        item.append(jump, ": ");
      }
      if (fault.path) {
        const place = document.createElement("code");
        place.textContent = fault.path;
        item.append(place, " ");
      }
      item.append(...inlineCode(fault.message));
      return item;
    }));
  }

  function show(answer) {
    const said = document.createElement("span");
    said.className = "num";
    said.textContent = `score ${score(answer.score)}`;
    if (!answer.assertions.length && answer.faults.length) {
      showFaults(answer.faults);
      return say("Not judged: the YAML has a fault.");
    }
    delete rows.dataset.stale;
    // As workflows_app.formats.verdict_of.
    const verdict = answer.passed ? "passed" : answer.assertions.some((one) => word(one) === "failed") ? "failed" : "error";
    rows.replaceChildren(...answer.assertions.map(row));
    none.hidden = answer.assertions.length > 0;
    summary.replaceChildren(...(answer.assertions.length ? [clone("badge", verdict), said] : []));
    showFaults(answer.faults);
  }

  // Why there are no new results; those of before stay, as such.
  function say(text) {
    const isStale = rows.childElementCount > 0;
    rows.toggleAttribute("data-stale", isStale);
    summary.textContent = isStale ? `${text} Results are from before.` : text;
  }

  async function evaluate() {
    trying?.abort();
    const mine = (trying = new AbortController());
    results.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(form.dataset.evaluate, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": token },
        body: JSON.stringify({ output: output.value, assertions: yaml.value, context: { cost_usd: number("cost_usd"), latency_ms: number("latency_ms") } }),
        signal: mine.signal,
      });
      const answer = await response.json();
      patience = PATIENCE[0];
      if (response.ok) show(answer);
      else say(answer.error?.message ?? "The server could not judge this.");
    } catch (error) {
      if (error.name === "AbortError") return;
      say("The server cannot be reached.");
      soon(patience);
      patience = Math.min(2 * patience, PATIENCE[1]);
    }
    if (mine === trying) results.removeAttribute("aria-busy");
  }

  function soon(wait = QUIET_MS) {
    clearTimeout(timer);
    timer = setTimeout(evaluate, wait);
    output.dir = output.value.length > LONG ? "ltr" : "auto";
  }

  function insert(id) {
    const example = document.getElementById(id).textContent.trim();
    const before = yaml.value.trimEnd();
    yaml.value = `${before ? `${before}\n` : ""}${example}\n`;
    yaml.focus();
    yaml.setSelectionRange(yaml.value.length, yaml.value.length);
    yaml.scrollTop = yaml.scrollHeight;
    evaluate();
  }

  function selectLine(line) {
    const lines = yaml.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    yaml.focus();
    yaml.setSelectionRange(Math.min(start, yaml.value.length), Math.min(start + (lines[line - 1] ?? "").length, yaml.value.length));
  }

  async function offerBlocks(slug) {
    const block = form.elements.block;
    const address = new URL(form.dataset.blocks, location);
    address.searchParams.set("workflow", slug);
    const response = slug ? await fetch(address).catch(() => null) : null;
    if (slug && !response?.ok) { window.runsight.toast("The blocks of this workflow could not be read.", "error"); return; }
    if (form.elements.workflow.value !== slug) return; // another was chosen meanwhile
    if (!response) { block.replaceChildren(block.options[0]); return; }
    // Our own server's markup, escaped by its templates.
    block.innerHTML = await response.text();
    if (block.options.length === 2) block.selectedIndex = 1;
  }

  const progress = document.getElementById("lab-progress");
  const report = document.getElementById("lab-report");

  function tell(text) {
    const note = document.createElement("div");
    note.className = "note note--bad";
    note.setAttribute("role", "alert");
    const words = document.createElement("div");
    words.className = "lab-told";
    words.textContent = text;
    note.append(window.runsight.icon("failed"), words);
    report.replaceChildren(note);
  }

  function line(frame) {
    if ("html" in frame) { report.innerHTML = frame.html; return true; }
    const bar = progress.querySelector("progress");
    bar.max = frame.of || 1;
    bar.value = frame.done;
    progress.querySelector(".label").textContent = `Judged ${frame.done.toLocaleString("en")} of about ${frame.of.toLocaleString("en")} outputs`;
    return false;
  }

  async function read(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let isWhole = false;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return isWhole;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const one of lines) isWhole = line(JSON.parse(one)) || isWhole;
    }
  }

  async function backtest() {
    looking?.abort();
    const mine = (looking = new AbortController());
    const button = document.getElementById("lab-backtest");
    button.setAttribute("aria-busy", "true");
    line({ done: 0, of: Number(form.elements.limit.value) });
    progress.hidden = false;
    try {
      const response = await fetch(form.dataset.backtest, { method: "POST", body: new FormData(form), signal: mine.signal });
      if (!response.ok) tell(`The server answered ${response.status}.`);
      else if (response.headers.get("Content-Type").includes("ndjson")) {
        if (!(await read(response))) tell("The server stopped before it was done. Try again, perhaps with fewer outputs.");
      } else {
        const { faults: found } = await response.json();
        tell(found.map((fault) => (fault.line ? `Line ${fault.line}: ${fault.message}` : fault.message)).join("\n"));
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      tell("The connection was lost before the backtest was done.");
    }
    progress.hidden = true;
    button.removeAttribute("aria-busy");
  }

  // A block's own text and assertions take the place of what is there, which can be had back.
  const undo = document.getElementById("lab-undo");
  const TAKEN = ["output", "assertions", "cost_usd", "latency_ms"];
  let before = [];

  function put(texts) {
    before = TAKEN.map((name) => form.elements[name].value);
    TAKEN.forEach((name, index) => { form.elements[name].value = texts[index]; });
    evaluate();
  }

  async function takeOver() {
    if (!form.elements.workflow.value || !form.elements.block.value) { tell("Choose a workflow and a block."); return; }
    const body = new FormData(form);
    body.set("action", "load");
    const response = await fetch(form.getAttribute("action"), { method: "POST", body }).catch(() => null);
    const page = response?.ok && new DOMParser().parseFromString(await response.text(), "text/html").getElementById("lab");
    if (!page) { window.runsight.toast("This block could not be loaded. Try again in a moment.", "error"); return; }
    put(TAKEN.map((name) => page.elements[name].value));
    undo.hidden = false;
    window.runsight.toast(`The text and the assertions are now those of ${form.elements.block.value}.`, "success");
  }

  undo.addEventListener("click", () => put(before));

  form.addEventListener("input", (event) => { if (event.target.matches("[data-live]")) soon(); });
  window.addEventListener("online", () => { if (rows.dataset.stale !== undefined) evaluate(); });
  form.addEventListener("change", (event) => { if (event.target.name === "workflow") offerBlocks(event.target.value); });
  form.addEventListener("submit", (event) => {
    const action = event.submitter?.value ?? "try";
    if (action === "backtest") { event.preventDefault(); backtest(); }
    if (action === "try") { event.preventDefault(); evaluate(); }
    if (action === "load") { event.preventDefault(); takeOver(); }
  });
  document.addEventListener("click", (event) => {
    const add = event.target.closest?.("[data-insert]");
    if (add) insert(add.dataset.insert);
    const jump = event.target.closest?.("[data-line]");
    if (jump) selectLine(Number(jump.dataset.line));
  });
  for (const button of document.querySelectorAll("[data-insert]")) button.hidden = false;

  // What was typed or picked before this script came, or kept by the browser over a reload, is not what the server judged.
  const picked = form.elements.workflow;
  if ([...form.querySelectorAll("[data-live]")].some((field) => field.value !== field.defaultValue)) evaluate();
  if (picked.value && !picked.selectedOptions[0].defaultSelected) offerBlocks(picked.value);
})();
