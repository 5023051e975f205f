// @ts-check
// For a browser without WebSocket: everything again every few seconds. Such a page shows, and changes nothing.

const EVERY_MS = 2000;

/** Whether there is a WebSocket. */
export const talks = "WebSocket" in globalThis;

/**
 * Hands over the messages that are new, and those that are about now.
 * @param {(told: any) => void} tell @param {() => void} closed when the server no longer answers
 */
export async function poll(tell, closed) {
  /** @type {Set<string>} */ let seen = new Set();
  for (;;) {
    /** @type {any[]} */ let told;
    try {
      told = await (await fetch(`all.json${location.search}`)).json();
    } catch {
      return closed();
    }
    const texts = told.map((one) => JSON.stringify(one));
    if (told.some(({ k }, n) => k === "plan" && !seen.has(texts[n]))) seen = new Set(); // another run: from the start
    texts.forEach((text, n) => seen.has(text) || tell(told[n]));
    seen = new Set(texts);
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}
