// Two comforts, both optional: a password can be shown, and a form is not sent twice.
"use strict";

for (const input of document.querySelectorAll("input[data-show]")) {
  const form = input.form;
  const box = document.createElement("div");
  box.className = "reveal";
  input.replaceWith(box);
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-controls", input.id);
  const label = () => {
    button.textContent = input.type === "password" ? input.dataset.show : input.dataset.hide;
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
  label();
  box.append(input, button);
  if (input.autofocus) input.focus();
}

for (const form of document.querySelectorAll("form[data-once]")) {
  let sent = false;
  const mark = (state) => {
    sent = state;
    for (const button of form.querySelectorAll("button[type=submit]")) button.setAttribute("aria-disabled", String(state));
  };
  form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    else mark(true);
  });
  // Back from the browser's page cache, the form may be sent again.
  addEventListener("pageshow", () => mark(false));
}
