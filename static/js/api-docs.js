// The calls of the API, drawn by Swagger UI from the schema, to read and to try out.

const place = document.getElementById("api-docs");

// A session may write only with the token of this page; a script's own token needs none.
function withCsrfToken(request) {
  if (!["GET", "HEAD"].includes(request.method ?? "GET")) {
    request.headers["X-CSRFToken"] = place.dataset.csrf;
  }
  return request;
}

window.SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  // No other host is asked what it thinks of the schema.
  validatorUrl: null,
  syntaxHighlight: { theme: "idea" },
  requestInterceptor: withCsrfToken,
});

// It is dark where Sonar is.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
