// Keeps what a page says true and disturbs nobody.
//   runsight.asker(every, address, take)  gives soon(): fetches the address, at most once in so many ms
//   runsight.swap(part, fresh)            puts newer content in once nobody uses the part; focus, ticks and place stay
(() => {
  const waiting = new Map(); // part: its newest content
  let timer = 0;

  function asker(every, address, take) {
    let due = 0;
    let last = 0;
    let isBusy = false;
    let isWanted = false;

    function soon(wait = 0) {
      isWanted = true;
      if (!due && !isBusy && !document.hidden) due = setTimeout(ask, Math.max(wait, last + every - Date.now()));
    }

    async function ask() {
      due = 0;
      if (document.hidden) return;
      isBusy = true;
      isWanted = false;
      last = Date.now();
      try {
        const answer = await fetch(address());
        if (!answer.ok) throw new Error(answer.status);
        if (!answer.redirected) take(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } catch { // the banner says that the connection is lost; later again
        last += 5 * every;
        isWanted = true;
      }
      isBusy = false;
      if (isWanted) soon();
    }

    document.addEventListener("visibilitychange", () => { if (isWanted) soon(); });
    return soon;
  }

  function isInUse(part) {
    const focused = document.activeElement;
    const selected = getSelection();
    return document.querySelector("dialog[open]") || part.matches(":active") || part.querySelector(".chart__tip, details[open]")
      || (part.contains(focused) && focused.matches("input:not([type=checkbox]), select, textarea"))
      || (!selected.isCollapsed && part.contains(selected.anchorNode))
      || [...part.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue);
  }

  function swap(part, fresh) {
    waiting.set(part, fresh);
    settle();
  }

  function settle() {
    clearTimeout(timer);
    for (const [part, fresh] of waiting) {
      if (isInUse(part)) continue;
      waiting.delete(part);
      if (!part.isEqualNode(fresh)) put(part, fresh);
    }
    if (waiting.size) timer = setTimeout(settle, 500);
  }

  const top = (one) => one.getBoundingClientRect().top;
  const key = (one) =>
    [one.id, one.getAttribute("href"), one.value, one.ariaLabel, one.type === "submit" && (one.getAttribute("formaction") ?? one.form?.action)].join();
  const like = (root, name, wanted) => [...root.querySelectorAll(name)].filter((other) => key(other) === wanted);

  function put(part, fresh) {
    const seen = scrollY && [...document.querySelectorAll("main [id]")].find((one) => one.clientHeight && top(one) > 0);
    const seenAt = seen && top(seen);
    const focused = [...part.querySelectorAll(":focus")].pop();
    const wanted = focused && key(focused); // while it is in its form
    const place = focused && like(part, focused.localName, wanted).indexOf(focused);
    const graph = part.querySelector(".graph-scroll");
    const shown = graph && [graph.scrollLeft, graph.scrollTop];
    for (const box of part.querySelectorAll("input:checked")) for (const other of like(fresh, box.localName, key(box))) other.checked = true;
    // What loads when scrolled to shows what was there until it has loaded anew.
    for (const slot of fresh.querySelectorAll("[hx-get][aria-busy]")) {
      const was = document.getElementById(slot.closest("[id]").id)?.querySelector(`.${slot.classList[0]}`);
      if (was && !was.querySelector(".skeleton")) slot.replaceChildren(...was.childNodes);
    }
    part.replaceChildren(...fresh.childNodes);
    window.htmx?.process(part);
    document.dispatchEvent(new Event("htmx:afterSwap"));
    if (shown) part.querySelector(".graph-scroll")?.scrollTo(...shown);
    const alike = focused ? like(part, focused.localName, wanted) : [];
    (alike[place] ?? alike[0])?.focus({ preventScroll: true });
    const now = seen && document.getElementById(seen.id);
    if (now) scrollBy({ top: top(now) - seenAt, behavior: "instant" });
  }

  window.runsight = Object.assign(window.runsight ?? {}, { asker, swap });
})();
