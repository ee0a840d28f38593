// A run's page: events fill in rows and graph at once, the server's own parts follow; a block opens the inspector.
(() => {
  const page = document.querySelector("[data-run-page]");
  const inspector = document.querySelector("[data-inspector]");
  const HEAD_EVERY = 400;
  const STAY = 20000; // what the end of a run brings about, such as a regression, still arrives

  const part = (root, name) => root.querySelector(`[data-part-of-run="${name}"]`);
  const row = (id) => [...page.querySelectorAll("[data-block]")].find((one) => one.dataset.block === id);
  const badge = (name) => page.querySelector(`template[data-badge="${name}"]`)?.content.cloneNode(true) ?? "";
  const word = (one) => (one.error ? "error" : one.passed ? "passed" : "failed");

  async function read(url) {
    const answer = await fetch(url, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.text();
  }

  function parse(html) {
    return new DOMParser().parseFromString(html, "text/html").body;
  }

  // The inspector

  let asked = 0;
  let coming = null; // what is being loaded: {pk, block}
  let hasChosen = false;

  function state(box) {
    return {
      block: box.querySelector("[data-inspected-block]")?.dataset.inspectedBlock,
      folds: [...box.querySelectorAll("details")].map((one) => one.open),
      tab: box.querySelector('[role="tab"][aria-selected="true"]')?.id,
    };
  }

  function restore(box, was) {
    if (box.querySelector("[data-inspected-block]")?.dataset.inspectedBlock !== was.block) return;
    box.querySelectorAll("details").forEach((one, i) => { one.open = was.folds[i] ?? one.open; });
    if (was.tab) box.querySelector(`#${CSS.escape(was.tab)}`)?.click();
  }

  async function open(pk, { isChosen = true, focus = false } = {}) {
    const mine = ++asked;
    coming = { pk, block: blockOf(pk) };
    if (isChosen) hasChosen = true;
    inspector.setAttribute("aria-busy", "true");
    try {
      const html = await read(`${page.dataset.nodesUrl}${pk}/?part=1`);
      if (mine !== asked) return;
      const was = state(inspector);
      inspector.replaceChildren(...parse(html).childNodes);
      restore(inspector, was);
      mark();
      document.dispatchEvent(new Event("htmx:afterSwap"));
      if (isChosen) history.replaceState(null, "", `#node-${pk}`);
      if (focus) inspector.querySelector("#inspector-title")?.focus();
      if (isChosen && inspector.getBoundingClientRect().top > innerHeight * 0.8) inspector.scrollIntoView({ block: "start" });
    } catch {
      if (mine === asked) window.runsight.toast("This block could not be loaded. Try again in a moment.", "error");
    } finally {
      if (mine === asked) {
        coming = null;
        inspector.removeAttribute("aria-busy");
      }
    }
  }

  const blockOf = (pk) => [...page.querySelectorAll("[data-block]")].find((one) => one.dataset.node === String(pk))?.dataset.block;
  const shown = () => inspector?.querySelector("[data-inspected]")?.dataset;

  function mark() {
    const block = shown()?.inspectedBlock;
    for (const one of page.querySelectorAll("[data-block]")) {
      if (one.dataset.block === block) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
  }

  function openHash() {
    let hash = location.hash;
    try { hash = decodeURIComponent(hash); } catch { return; } // nothing of ours
    const [, kind, name] = /^#(node|block)-(.+)$/.exec(hash) ?? [];
    const pk = kind === "node" ? Number(name) : Number(kind && row(name)?.dataset.node);
    if (pk && String(pk) !== shown()?.inspected) open(pk);
  }

  function onClick(event) {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const drawn = event.target.closest?.("[data-node-id]");
    const link = drawn ? row(drawn.dataset.nodeId) : event.target.closest?.("[data-node]");
    if (!link) return;
    event.preventDefault();
    if (link.dataset.node) open(link.dataset.node, { focus: event.detail === 0 });
  }

  // Events

  function set(block, name, ...content) {
    block.querySelector(`[data-part="${name}"]`)?.replaceChildren(...content);
  }

  const MOST_DOTS = 8; // as in evals_app/run_blocks.py

  function dots(block, words) {
    const isMany = words.length > MOST_DOTS;
    const first = isMany ? [...words].sort((a, b) => (a === "passed") - (b === "passed")).slice(0, MOST_DOTS) : words;
    const drawn = first.map((one) => {
      const dot = document.createElement("span");
      dot.className = `dot dot--${one}`;
      return dot;
    });
    if (isMany) {
      const rest = document.createElement("small");
      rest.textContent = `+${words.length - MOST_DOTS}`;
      drawn.push(rest);
    }
    set(block, "dots", ...drawn);
    const box = block.querySelector('[data-part="dots"]');
    if (!words.length) return;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${words.filter((one) => one === "passed").length} of ${words.length} assertions passed`);
  }

  function node(message, change) {
    const { data } = message;
    const block = row(data.node_id);
    graph(data.node_id, drawn[message.event](data));
    if (!block) { // on another page of the list; what did not pass belongs on the first
      if (isBad(data)) refresh(true);
      return null;
    }
    block.dataset.node = data.node;
    block.href = `${page.dataset.nodesUrl}${data.node}/`;
    change(block, data);
    block.classList.remove("is-fresh");
    void block.offsetWidth; // lets the animation begin anew
    block.classList.add("is-fresh");
    follow(data);
    return block;
  }

  const verdict = ({ passed, assertions }) => (passed ? "passed" : assertions.map(word).includes("failed") ? "failed" : "error");

  // What an event changes in the graph, which has every block, also those on another page of the list.
  const drawn = {
    node_started: () => ({ status: "running", score: null, dots: [] }),
    node_completed: () => ({ status: "completed" }),
    node_failed: () => ({ status: "failed" }),
    node_eval_complete: (data) => ({ status: data.passed ? undefined : verdict(data), score: data.eval_score, dots: data.assertions.map(word) }),
  };

  const isBad = (data) => data.passed === false || Boolean(data.error && !data.will_retry);

  // What is open is loaded again; who has chosen nothing sees the first block, then the first bad one.
  function follow(data) {
    const now = shown();
    const isFirst = !now && !coming;
    const wasBad = inspector.querySelector(".assertion--failed, .assertion--error, .note--bad");
    if ((coming?.block ?? now?.inspectedBlock) === data.node_id) open(data.node, { isChosen: false });
    else if (!hasChosen && (isFirst || (isBad(data) && !wasBad))) open(data.node, { isChosen: false });
  }

  const graph = (id, change) => window.runsight.updateNode?.(part(page, "graph"), id, change);

  function say(text) {
    page.querySelector("[data-announce]").textContent = text;
  }

  const on = {
    node_started: (message) => node(message, (block, data) => {
      set(block, "state", badge("status-running"));
      for (const name of ["figures", "dots", "score"]) set(block, name);
      const about = [block.dataset.kind, data.iteration > 1 && `round ${data.iteration}`, data.attempt > 1 && `attempt ${data.attempt}`];
      set(block, "about", about.filter(Boolean).join(" · "));
      // A loop is told of only when it ends; what begins inside it shows that it is under way.
      const loop = block.dataset.loop && row(block.dataset.loop);
      if (loop && !loop.dataset.node) {
        set(loop, "state", badge("status-running"));
        graph(block.dataset.loop, { status: "running" });
      }
    }),
    node_completed: (message) => node(message, (block, data) => {
      set(block, "state", badge("status-completed"));
      const figure = document.createElement("span");
      figure.textContent = window.runsight.duration(data.latency_ms ?? 0);
      set(block, "figures", figure);
    }),
    node_failed: (message) => node(message, (block, data) => {
      set(block, "state", badge("status-failed"));
      if (!data.will_retry) say(`${data.node_id} failed.`);
    }),
    node_eval_complete: (message) => node(message, (block, data) => {
      const words = data.assertions.map(word);
      dots(block, words);
      set(block, "score", data.eval_score === null ? "" : (data.eval_score < 1 ? Math.min(data.eval_score, 0.99) : 1).toFixed(2));
      set(block, "state", badge(`verdict-${verdict(data)}`));
      if (!data.passed) say(`${data.node_id}: ${words.filter((one) => one !== "passed").length} of ${words.length} assertions did not pass.`);
    }),
    regression_found: ({ data }) => window.runsight.toast(`Regression found: ${data.node_id}, ${data.kind.replaceAll("_", " ")}.`, "warning"),
  };

  function end(message) {
    const { status, eval_passed: passed } = message.data;
    const verdict = passed === null ? "" : passed ? ", all assertions passed" : ", not all assertions passed";
    say(`${page.dataset.runName} ${status}${verdict}.`);
    refresh(true);
    const last = coming?.pk ?? shown()?.inspected;
    if (!hasChosen && last) open(last, { isChosen: false });
    setTimeout(() => socket?.close(), STAY);
  }

  function onMessage(message) {
    on[message.event]?.(message);
    if (["run_completed", "run_failed", "run_cancelled"].includes(message.event)) end(message);
    else refresh(false);
  }

  // The server's parts

  let due = 0;
  let wantsAll = false;

  function refresh(isAll) {
    wantsAll ||= isAll;
    due ||= setTimeout(async () => {
      const all = wantsAll;
      wantsAll = false;
      try {
        take(parse(await read(`${page.dataset.partsUrl}&seq=${lastLogged()}${all ? "&part=all" : ""}`)));
      } catch {
        if (all) wantsAll = true;
        setTimeout(() => refresh(false), 2000);
      } finally {
        due = 0;
        if (wantsAll) refresh(true);
      }
    }, isAll ? 60 : HEAD_EVERY);
  }

  // How to find a control again in a part that comes anew.
  function same(control) {
    if (!control?.closest?.("[data-part-of-run]")) return "";
    if (control.id) return `#${CSS.escape(control.id)}`;
    const action = control.form?.getAttribute("action");
    if (action) return `form[action="${CSS.escape(action)}"] button`;
    return control.hasAttribute("href") ? `[data-part-of-run] [href="${CSS.escape(control.getAttribute("href"))}"]` : "";
  }

  function take(fresh) {
    const held = same(document.activeElement);
    for (const next of fresh.querySelectorAll(":scope > [data-part-of-run]")) { // a part inside one comes with it
      const old = part(page, next.dataset.partOfRun);
      if (!old) continue;
      const was = old.querySelector(".graph-scroll");
      const place = was && { left: was.scrollLeft, top: was.scrollTop };
      old.replaceWith(document.adoptNode(next));
      if (place) next.querySelector(".graph-scroll")?.scrollTo(place);
    }
    if (held && !page.contains(document.activeElement)) page.querySelector(held)?.focus({ preventScroll: true });
    for (const one of fresh.querySelectorAll("[data-skipped]")) {
      const block = row(one.dataset.skipped);
      if (block) set(block, "state", badge("status-skipped"));
      graph(one.dataset.skipped, { status: "skipped" });
    }
    log(fresh.querySelectorAll("[data-new-log] > li"));
    mark();
    document.dispatchEvent(new Event("htmx:afterSwap"));
  }

  const lines = () => page.querySelector("[data-log]");
  const lastLogged = () => Number(lines()?.lastElementChild?.dataset.seq ?? 0);

  function log(fresh) {
    const list = lines();
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    for (const line of fresh) if (Number(line.dataset.seq) > lastLogged()) list.append(document.adoptNode(line));
    page.querySelector("[data-log-count]").textContent = lastLogged();
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }

  function onState(now) {
    if (now === "open" && wasLost) refresh(true);
    wasLost = now === "lost";
  }

  // Whole texts, large graphs and copies, on demand

  // In pieces of many lines, of which the browser lays out only those in sight.
  function* pieces(text) {
    for (let start = 0; start < text.length;) {
      const lineEnd = text.indexOf("\n", start + 20000);
      let end = lineEnd < 0 || lineEnd > start + 40000 ? start + 20000 : lineEnd + 1;
      if (/[\uD800-\uDBFF]/.test(text[end - 1])) end += 1; // not through a letter
      const piece = document.createElement("span");
      piece.className = "piece";
      piece.textContent = text.slice(start, end);
      yield piece;
      start = end;
    }
  }

  async function onDemand(event) {
    const whole = event.target.closest?.("[data-load-whole]");
    const copied = event.target.closest?.("[data-copy-from]");
    const drawn = event.target.closest?.("[data-draw]");
    if (!whole && !copied && !drawn) return;
    event.preventDefault();
    if (drawn) {
      page.dataset.partsUrl += "&graph=1";
      refresh(true);
      return;
    }
    const link = whole ?? copied;
    try {
      const text = await read(link.href);
      if (copied) {
        await navigator.clipboard.writeText(text);
        window.runsight.toast("Copied: paste it under eval.cases of the workflow.", "success");
      } else {
        const box = document.querySelector(link.dataset.loadWhole);
        box.replaceChildren(...pieces(text));
        const panel = box.closest('[role="tabpanel"]');
        if (panel) document.getElementById(panel.getAttribute("aria-labelledby"))?.click();
        // Of the two that lead there, the text's own sentence is no longer true; the other's is.
        for (const one of document.querySelectorAll(`[data-load-whole="${link.dataset.loadWhole}"]`)) (panel && !panel.contains(one) ? one : one.parentElement).remove();
      }
    } catch {
      location.assign(link.href);
    }
  }

  let socket = null;
  let wasLost = false;
  document.addEventListener("click", onDemand);
  if (!page) return;
  page.addEventListener("click", onClick);
  window.addEventListener("hashchange", openHash);
  mark();
  openHash();
  if (page.dataset.live === "yes") {
    socket = window.runsight.live(`/ws/runs/${page.dataset.runPage}/`, { after: Number(page.dataset.lastSeq), onMessage, onState });
  }
})();
