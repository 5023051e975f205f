// A demonstration (`tcpsbed demo`): what it shows is behind the # of the address, which the browser keeps to itself.
// @ts-check

const asked = new URLSearchParams(location.hash.slice(1));

if (asked.has("tour")) {
  const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "demo.css" });
  document.head.append(sheet);
  const section = Object.assign(document.createElement("section"), { id: "demo" });
  document.querySelector("main")?.prepend(section);
  if (asked.has("console")) {
    const { open } = await import("./pane.js");
    open(section, asked);
  }
  const { begin } = await import("./tour.js");
  begin(section, asked.get("tour") ?? "");
}
