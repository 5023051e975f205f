// @ts-check
// Elements that all pages share.

/** An element of the page by its id. @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/**
 * A new element. Keys are properties where it has them, attributes otherwise; children that are texts stay texts.
 * @param {string} name @param {Record<string, any>} [keys] @param {(Node | string)[]} inside @returns {any}
 */
export function element(name, keys = {}, ...inside) {
  const made = /** @type {any} */ (document.createElement(name));
  for (const [key, value] of Object.entries(keys)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

/** A button. @param {string | Node} inside @param {() => void} onclick @param {Record<string, any>} [keys] */
export const button = (inside, onclick, keys = {}) => element("button", { type: "button", onclick, ...keys }, inside);
