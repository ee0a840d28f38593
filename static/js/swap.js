// The one way in which a page takes over newer HTML. The server renders it; each element of its answer that is marked
// <… id="x" data-fresh> replaces the one with that id, once nobody is using it. data-fresh="append" adds new children.
//   runsight.swap(url, {body, into})      asks once; rejects with a sentence that says what went wrong
//   runsight.refresher(every, url, then)  returns soon(wait): asks at most once in so many ms, and again if that fails
//   runsight.take(html)                   puts in HTML that is already here
// `into` is the id of what a person waits for: it is busy meanwhile, it changes although it is in use, and a newer
// request for it replaces an older one.
//   <… id="x" data-fresh data-load="url">     is asked for as it comes near the part of the page that is seen
//   <… data-swaps="x" data-from="url"> <a …>  links and forms in it change only x, and the page's address; data-from
//                                             says where x comes from, if not from the page itself
//   <a data-asks="name" …>                    what a link changes of the page's address; it keeps the rest of it
(() => {
  const waiting = new Map(); // element: its newer self, until nobody uses the element
  const requests = new Map(); // id: the latest request that a person waits for
  const answered = new Map(); // id: when that was answered
  const AGAIN = 5000;
  let timer = 0;
  let shown = location.search; // what the parts of the page show

  const parse = (html) => new DOMParser().parseFromString(html, "text/html");

  async function swap(url, { body, into } = {}) {
    const since = performance.now();
    const target = into && document.getElementById(into);
    const request = new AbortController();
    if (into) {
      requests.get(into)?.abort();
      requests.set(into, request);
      target?.setAttribute("aria-busy", "true");
    }
    try {
      const answer = await fetch(url, { method: body ? "POST" : "GET", body, signal: request.signal });
      if (answer.redirected) throw Object.assign(new Error("You are logged out; log in again in another tab."), { isFinal: true });
      if (!answer.ok) throw Object.assign(new Error(`The server answered ${answer.status}.`), { isAnswer: true });
      const page = parse(await answer.text());
      if (into) answered.set(into, performance.now());
      takeFrom(page, { isAsked: Boolean(into), into, since });
      return page;
    } catch (error) {
      if (error.name === "AbortError") return null;
      throw error instanceof TypeError ? new Error("The server cannot be reached.") : error;
    } finally {
      if (into && requests.get(into) === request) target?.removeAttribute("aria-busy");
    }
  }

  function refresher(every, url, then = () => {}) {
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
      let isLost = false;
      try {
        then(await swap(url()));
      } catch (error) {
        isLost = true;
        last += 5 * every;
        isWanted = !error.isFinal;
      }
      if (!window.runsight.live) window.runsight.connection(isLost); // else the socket says so
      isBusy = false;
      if (isWanted) soon();
    }

    document.addEventListener("visibilitychange", () => { if (isWanted) soon(); });
    return soon;
  }

  // An asked-for part comes at once. What comes with it does, too, unless that is the rest of the page.
  function takeFrom(page, { isAsked, into, since = 0 }) {
    const isPage = Boolean(page.getElementById(into));
    for (const fresh of page.querySelectorAll("[data-fresh]")) {
      const old = document.getElementById(fresh.id);
      const isInside = fresh.parentElement.closest("[data-fresh]"); // comes with what is around it
      const isOutdated = answered.get(fresh.id) > since && !isAsked;
      if (!old || isInside || isOutdated) continue;
      if (fresh.dataset.fresh === "append") append(old, fresh);
      else if (isAsked && (!isPage || fresh.id === into)) {
        waiting.delete(old); // what waits was asked for earlier
        put(old, fresh);
      } else waiting.set(old, fresh);
    }
    settle();
  }

  function append(list, fresh) {
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    list.append(...[...fresh.children].filter((one) => !document.getElementById(one.id)));
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }

  function isInUse(part) {
    const focused = document.activeElement;
    const selected = getSelection();
    return document.querySelector("dialog[open]") || part.matches(":active") || part.querySelector(".chart__tip")
      || (part.contains(focused) && focused.matches("input:not([type=checkbox]), select, textarea"))
      || (!selected.isCollapsed && part.contains(selected.anchorNode))
      || [...part.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue);
  }

  function settle() {
    clearTimeout(timer);
    for (const [part, fresh] of waiting) {
      if (part.isConnected && isInUse(part)) continue;
      waiting.delete(part);
      if (part.isConnected) put(part, fresh);
    }
    if (waiting.size) timer = setTimeout(settle, 500);
  }

  // How a control is found again in newer HTML: by what it is and where it leads, then by its place among its like.
  const key = (one) => [
    one.localName, one.parentElement?.closest("[id]")?.id, one.id, one.getAttribute("href"), one.value, one.ariaLabel,
    one.localName === "summary" && one.textContent, one.type === "submit" && (one.getAttribute("formaction") ?? one.form?.action),
  ].join();
  const alike = (root, wanted) => [...root.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")].filter((one) => key(one) === wanted);
  const top = (one) => one.getBoundingClientRect().top;

  // Focus, ticks, open folds, chosen tabs and the place that somebody scrolled to are kept.
  function put(part, fresh) {
    if (part.isEqualNode(fresh)) return;
    const remember = (selector) => [...part.querySelectorAll(selector)].map((one) => [key(one), alike(part, key(one)).indexOf(one)]);
    const focused = remember(":focus").pop();
    const ticked = remember("input:checked");
    const open = remember("details[open] > summary");
    const tabs = remember('[role="tab"][aria-selected="true"]');
    const graph = part.querySelector(".graph-scroll");
    const shown = graph && [graph.scrollLeft, graph.scrollTop];
    const seen = scrollY && [...document.querySelectorAll("main [id]")].find((one) => one.clientHeight && top(one) > 0);
    const seenAt = seen && top(seen);
    // What loads when scrolled to shows what was there until it has loaded again.
    for (const slot of fresh.querySelectorAll("[data-load]")) {
      const was = document.getElementById(slot.id);
      if (was && !was.querySelector(".skeleton")) slot.replaceChildren(...was.childNodes);
    }
    const now = replace(part, fresh);
    watch(now);
    const again = ([wanted, place]) => { const found = alike(now, wanted); return found[place] ?? found[0]; };
    for (const box of ticked.map(again)) if (box) box.checked = true;
    for (const summary of open.map(again)) if (summary) summary.parentElement.open = true;
    for (const tab of tabs.map(again)) if (tab?.ariaSelected === "false") tab.click();
    if (shown) now.querySelector(".graph-scroll")?.scrollTo(...shown);
    now.dispatchEvent(new Event("runsight:swap", { bubbles: true }));
    if (focused) again(focused)?.focus({ preventScroll: true });
    const stillSeen = seen && document.getElementById(seen.id);
    if (stillSeen) scrollBy({ top: top(stillSeen) - seenAt, behavior: "instant" });
  }

  // The element itself stays, so that a row keeps the focus and a status line is read out.
  function replace(part, fresh) {
    if (part.localName !== fresh.localName) {
      part.replaceWith(fresh);
      return fresh;
    }
    for (const { name } of [...part.attributes]) if (!fresh.hasAttribute(name)) part.removeAttribute(name);
    for (const { name, value } of fresh.attributes) part.setAttribute(name, value);
    part.replaceChildren(...fresh.childNodes);
    return part;
  }

  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) load(target);
  }, { rootMargin: "100%" });
  const watch = (root) => { for (const slot of root.querySelectorAll("[data-load]")) sight.observe(slot); };

  async function load(slot) {
    sight.unobserve(slot);
    try {
      await swap(slot.dataset.load);
    } catch (error) {
      if (!error.isFinal) setTimeout(() => sight.observe(slot), AGAIN);
    }
  }

  async function follow(event, group, query) {
    event.preventDefault();
    const url = new URL(group.dataset.from ?? "", location);
    url.search = query;
    url.searchParams.set("part", "1");
    try {
      if (!await swap(url, { into: group.dataset.swaps })) return;
    } catch (error) {
      window.runsight.toast(error.message, "warning");
      return;
    }
    history.pushState(null, "", query);
    shown = location.search;
    for (const link of document.querySelectorAll("a[data-asks]")) {
      const kept = new URLSearchParams(shown);
      kept.set(link.dataset.asks, new URLSearchParams(link.search).get(link.dataset.asks));
      link.search = kept;
    }
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-swaps] a");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    follow(event, link.closest("[data-swaps]"), link.search);
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-swaps] form");
    if (!form) return;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    follow(event, form.closest("[data-swaps]"), `?${query}`);
  });
  window.addEventListener("popstate", () => { if (location.search !== shown) location.reload(); });
  watch(document);

  window.runsight = Object.assign(window.runsight ?? {}, { swap, refresher, take: (html) => takeFrom(parse(html), { isAsked: true }) });
})();
