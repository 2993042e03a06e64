// Five comforts, all optional: a password can be shown, a form is not sent twice and keeps its way, what was done is said once, and
// moments are those of the person's own clock.
"use strict";

for (const input of document.querySelectorAll("input[data-show]")) {
  const form = input.form;
  // Moving it takes the focus from whoever is typing already.
  const focused = document.activeElement === input;
  const nobody = document.activeElement === document.body;
  const caret = [input.selectionStart, input.selectionEnd];
  const box = document.createElement("div");
  box.className = "reveal";
  input.replaceWith(box);
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-controls", input.id);
  const label = () => {
    button.textContent = input.type === "password" ? input.dataset.show : input.dataset.hide;
    // Where there are two of them, which is which.
    if (input.labels.length > 0) button.setAttribute("aria-label", `${button.textContent}: ${input.labels[0].textContent}`);
  };
  button.addEventListener("click", () => {
    input.type = input.type === "password" ? "text" : "password";
    label();
  });
  // A browser offers to keep a password only from a password field.
  form.addEventListener("submit", () => {
    input.type = "password";
    label();
  });
  box.append(input, button);
  label();
  if (focused || (input.autofocus && nobody)) input.focus();
  if (focused) input.setSelectionRange(...caret);
}

// What has to be typed anew is where the page begins, or else what was wrong.
const first = document.querySelector("[aria-invalid=true]") ?? document.querySelector(".alert.bad[tabindex]");
if (document.activeElement === document.body && !document.querySelector("[autofocus]")) first?.focus();

for (const form of document.querySelectorAll("form[data-once]")) {
  const passwords = [...form.querySelectorAll("input[autocomplete$=password]")];
  const needed = passwords.filter((field) => field.required);
  let [sent, emptied, again] = [false, false, 0];
  const mark = (state) => {
    sent = state;
    form.setAttribute("aria-busy", String(state));
    // While they are on their way nobody is told that they are missing.
    for (const field of needed) field.required = !state;
    for (const button of form.querySelectorAll("button[type=submit]")) button.setAttribute("aria-disabled", String(state));
  };
  form.addEventListener("submit", (event) => {
    // Who has typed the password once more has stopped it on the way, and means it.
    const retyped = emptied && passwords.length > 0 && passwords.every((field) => field.value !== "");
    if (sent && !retyped) {
      event.preventDefault();
      return;
    }
    mark(true);
    emptied = false;
    // Once it is on its way: where that leads to a native application the page stays, and so would a password.
    setTimeout(() => {
      for (const field of passwords) field.value = "";
      emptied = true;
    });
    // Stopped on the way, or led to a native application: it may be sent again. A password is changed, and an account made, by the
    // first of two: the second would be told that it came to nothing. So it waits for longer than the server takes in any case.
    clearTimeout(again);
    again = setTimeout(() => mark(false), form.querySelector("[autocomplete=new-password]") ? 60_000 : 8000);
  });
  // So it may when the browser brings the page back from its cache.
  addEventListener("pageshow", () => mark(false));
}

// The server knows neither the time zone nor how somebody writes a date. What was just now needs neither.
const spoken = document.documentElement.lang;
// Of the page's language, as it is written where this person lives.
const written = navigator.languages.find((language) => language.split("-")[0] === spoken) ?? spoken;
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  const write = (styles) => new Intl.DateTimeFormat(written, styles).format(at);
  time.title = write({ dateStyle: "full", timeStyle: "long" });
  const exact = write({ dateStyle: "medium", timeStyle: "short" });
  const isDate = /^\d{4}-\d\d-\d\d$/.test(time.textContent);
  if (isDate) time.textContent = exact;
  else if (Date.now() - at > 3600e3) time.textContent += ` (${exact})`;
}

// Asked for once more by its address, a form that was sent and came back still knows what it is on the way to.
const refused = document.querySelector(".alert.bad") && document.querySelector('form[data-once] > input[name="flow"]');
if (refused && location.search === "" && /\/(login|signup)$/.test(location.pathname)) history.replaceState(null, "", `${location.pathname}?flow=${encodeURIComponent(refused.value)}`);

// Loaded again, the page does not say again that something was done.
if (document.querySelector(".alert.good[role=status]")) history.replaceState(null, "", location.pathname);
