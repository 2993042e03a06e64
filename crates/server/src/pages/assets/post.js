// Sends the response at once. A field may be named "submit", so the form's own property may not be the method.
"use strict";

HTMLFormElement.prototype.submit.call(document.getElementById("response"));
