// Sends the response at once, and once: an impatient click would bring the application the same code a second time, and
// a code used twice revokes what it gave (RFC 6749 §4.1.2).
"use strict";

const form = document.getElementById("response");
const button = document.querySelector("#response button");
let [sent, again] = [false, 0];

const mark = (state) => {
  sent = state;
  button.setAttribute("aria-disabled", String(state));
  // If the application did not answer, or answered with no page, the button is what remains.
  clearTimeout(again);
  if (state) again = setTimeout(() => mark(false), 8000);
};

// Both on the window: a field may have the name of one of the form's own methods.
addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  else mark(true);
});
addEventListener("pageshow", (event) => {
  if (event.persisted) mark(false);
});

mark(true);
// Likewise, a field may be named "submit". This method tells no listener.
HTMLFormElement.prototype.submit.call(form);
