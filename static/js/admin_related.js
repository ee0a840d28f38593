// Pop-ups beside a field that choose, add, change, view or delete what it refers to: what Django's own script does,
// without jQuery. Names of functions, windows and events are Django's, for its widgets and popup_response.js use them.
(() => {
  const children = [];
  const depth = document.getElementsByName("_popup").length ? Number(window.name.split("__").pop()) || 0 : 0;
  const fieldOf = (child) => child.name.replace(new RegExp(`__${depth + 1}$`), "");
  const changed = (element) => element.dispatchEvent(new Event("change", { bubbles: true }));

  function open(link, prefix) {
    const address = new URL(link.href);
    address.searchParams.set("_popup", 1);
    const child = window.open(address, `${link.id.replace(prefix, "")}__${depth + 1}`, "height=600,width=900,resizable=yes,scrollbars=yes");
    children.push(child);
    child.focus();
  }

  function close(child) {
    const at = children.indexOf(child);
    if (at >= 0) children.splice(at, 1);
    child.close();
  }

  // A selector of many is two lists, kept by SelectBox.
  const listsOf = (field) => ["", "_from", "_to"].map((end) => document.getElementById(field + end)).filter(Boolean);
  const optionsOf = (lists, value) => lists.flatMap((list) => [...(list.options ?? [])].filter((option) => option.value === value));

  // Other selectors of the same model offer the new row as well, or name it anew.
  function tellOthers(model, mine, value, name, newValue) {
    for (const list of document.querySelectorAll(`[data-model-ref="${model}"] [data-context="available-source"]`)) {
      if (mine.includes(list)) continue;
      const known = optionsOf([list], value)[0];
      if (known) Object.assign(known, { textContent: name, value: newValue });
      else if (window.SelectBox?.cache[list.id]) {
        SelectBox.add_to_cache(list.id, new Option(name, newValue));
        SelectBox.redisplay(list.id);
      } else list.add(new Option(name, newValue));
    }
  }
  const modelOf = (child, fromTheEnd) => child.location.pathname.split("/").at(-fromTheEnd);

  function put(input, value) {
    const isOfMany = input.classList.contains("vManyToManyRawIdAdminField") && input.value;
    input.value = isOfMany ? `${input.value},${value}` : value;
    changed(input);
  }

  window.dismissRelatedLookupPopup = (child, value) => {
    put(document.getElementById(fieldOf(child)), value);
    close(child);
  };

  window.dismissAddRelatedObjectPopup = (child, value, name) => {
    const field = fieldOf(child);
    const element = document.getElementById(field);
    const chosen = document.getElementById(`${field}_to`);
    if (element?.tagName === "SELECT") {
      element.add(new Option(name, value, true, true));
      tellOthers(modelOf(child, 3), [element], value, name, value);
      changed(element);
    } else if (element) put(element, value);
    else if (chosen) {
      SelectBox.add_to_cache(chosen.id, new Option(name, value));
      SelectBox.redisplay(chosen.id);
      tellOthers(modelOf(child, 3), listsOf(field), value, name, value);
    }
    close(child);
  };

  window.dismissChangeRelatedObjectPopup = (child, value, name, newValue) => {
    const lists = listsOf(fieldOf(child).replace(/^edit_/, ""));
    for (const option of optionsOf(lists, value)) Object.assign(option, { textContent: name, value: newValue });
    lists.forEach(changed);
    tellOthers(modelOf(child, 4), lists, value, name, newValue);
    close(child);
  };

  window.dismissDeleteRelatedObjectPopup = (child, value) => {
    const lists = listsOf(fieldOf(child).replace(/^delete_/, ""));
    for (const option of optionsOf(lists, value)) option.remove();
    lists.forEach(changed);
    close(child);
  };

  window.dismissChildPopups = () => children.splice(0).forEach((child) => {
    if (child.closed) return;
    child.dismissChildPopups?.();
    child.close();
  });
  window.addEventListener("pagehide", () => window.dismissChildPopups());

  // The links beside a select follow what is chosen in it.
  function follow(select) {
    for (const link of select.parentElement.querySelectorAll(".view-related, .change-related, .delete-related")) {
      if (select.value) {
        link.href = link.dataset.hrefTemplate.replace("__fk__", select.value);
        link.removeAttribute("aria-disabled");
      } else {
        link.removeAttribute("href");
        link.setAttribute("aria-disabled", "true");
      }
    }
  }
  const isLetBy = (element, name) => element.dispatchEvent(new CustomEvent(name, { bubbles: true, cancelable: true }));

  document.addEventListener("change", (event) => {
    if (event.target.matches(".related-widget-wrapper select") && isLetBy(event.target, "django:update-related")) follow(event.target);
  });
  document.querySelectorAll(".related-widget-wrapper select").forEach(follow);

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-popup-opener], a.related-lookup, .related-widget-wrapper-link[data-popup=yes]");
    if (!link) return;
    event.preventDefault();
    if (link.dataset.popupOpener !== undefined) opener.dismissRelatedLookupPopup(window, link.dataset.popupOpener);
    else if (link.matches(".related-lookup")) { if (isLetBy(link, "django:lookup-related")) open(link, /^lookup_/); }
    else if (link.href && isLetBy(link, "django:show-related")) open(link, /^(change|add|delete)_/);
  });
})();
