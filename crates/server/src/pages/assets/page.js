// Five conveniences, all optional: a password can be shown, a form is not sent twice and keeps its flow, a notice is
// shown once, and times follow the user's own clock. And a guard: what a user did not see yet is not allowed by a click.
"use strict";

// Another site's window that closes under a double click leaves its second click here, on whatever it covered; and a
// page that goes on to this one under the first click of two leaves it the second. So a second click allows nothing, nor
// does a click right after the page came into sight again. A key does if it was pressed since then: whoever presses a
// key has gone to the button first, as no site can for them. Such a click has no detail, as that of a screen reader.
let [away, appeared, pressed] = [!document.hasFocus(), -Infinity, -1];
const appear = () => {
  if (away && document.visibilityState === "visible") [away, appeared] = [false, performance.now()];
};
addEventListener("blur", () => { away = true; });
addEventListener("focus", appear);
addEventListener("pageshow", (event) => { if (event.persisted) [away, appeared] = [false, performance.now()]; });
document.addEventListener("visibilitychange", () => { away = true; appear(); });
addEventListener("keydown", (event) => { if (!event.repeat) pressed = performance.now(); }, true);
for (const button of document.querySelectorAll('[name="decision"][value="allow"], [name="choice"][value="continue"]')) {
  button.addEventListener("click", (event) => {
    const byKey = event.detail === 0 && pressed > appeared;
    const tooSoon = performance.now() - appeared < 500;
    if (!byKey && (tooSoon || event.detail > 1)) event.preventDefault();
  });
}

for (const input of document.querySelectorAll("input[data-show]")) {
  const form = input.form;
  // Moving the field takes the focus from a user who is typing already.
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
    // With two such fields, says which one it is.
    if (input.labels.length > 0) button.setAttribute("aria-label", `${button.textContent}: ${input.labels[0].textContent}`);
  };
  button.addEventListener("click", () => {
    input.type = input.type === "password" ? "text" : "password";
    label();
  });
  // A browser offers to save a password only from a password field.
  form.addEventListener("submit", () => {
    input.type = "password";
    label();
  });
  box.append(input, button);
  label();
  if (focused || (input.autofocus && nobody)) input.focus();
  if (focused) input.setSelectionRange(...caret);
}

// The page begins at the field that has to be typed again, or else at what was wrong.
const first = document.querySelector("[aria-invalid=true]") ?? document.querySelector(".alert.bad[tabindex]");
if (document.activeElement === document.body && !document.querySelector("[autofocus]")) first?.focus();

for (const form of document.querySelectorAll("form[data-once]")) {
  const passwords = [...form.querySelectorAll("input[autocomplete$=password]")];
  const needed = passwords.filter((field) => field.required);
  let [sent, emptied, again] = [false, false, 0];
  const mark = (state) => {
    sent = state;
    form.setAttribute("aria-busy", String(state));
    // While the passwords are being sent, they are not reported as missing.
    for (const field of needed) field.required = !state;
    for (const button of form.querySelectorAll("button[type=submit]")) button.setAttribute("aria-disabled", String(state));
  };
  form.addEventListener("submit", (event) => {
    // A user who has typed the password again has stopped the form on its way, and means to send it again.
    const retyped = emptied && passwords.length > 0 && passwords.every((field) => field.value !== "");
    if (sent && !retyped) {
      event.preventDefault();
      return;
    }
    mark(true);
    emptied = false;
    // After sending: if the form leads to a native application, the page stays, and so would a password.
    setTimeout(() => {
      for (const field of passwords) field.value = "";
      emptied = true;
    });
    // Stopped on its way, or led to a native application: it may be sent again. The first of two forms changes the
    // password, or makes the account, and the second would be refused: that wait is longer than the server ever takes.
    clearTimeout(again);
    again = setTimeout(() => mark(false), form.querySelector("[autocomplete=new-password]") ? 60_000 : 8000);
  });
  // It may also be sent again when the browser brings the page back from its cache.
  addEventListener("pageshow", () => mark(false));
}

// The server knows neither the time zone nor how the user writes a date. "Just now" needs neither.
const spoken = document.documentElement.lang;
// The page's language, as it is written where the user lives.
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

// A form that was sent and came back keeps its flow in its address, for a reload from there.
const refused = document.querySelector(".alert.bad") && document.querySelector('form[data-once] > input[name="flow"]');
if (refused && location.search === "" && /\/(login|signup)$/.test(location.pathname)) history.replaceState(null, "", `${location.pathname}?flow=${encodeURIComponent(refused.value)}`);

// When the page is reloaded, it does not show the notice again.
if (document.querySelector(".alert.good[role=status]")) history.replaceState(null, "", location.pathname);
