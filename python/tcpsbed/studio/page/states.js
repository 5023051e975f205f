// @ts-check
// What the states of a supervisor mean, in plain words, with its limits (docs/safety.md).

import { run } from "./run.js";

/** Which of an operator's movements resumes control after a safe stop. @type {Record<string, string>} */
const ENGAGE = { near: " and the hand is near the robot", clutch: " and the clutch was opened and closed" };

/** @param {string} component the supervisor's @param {string} state its name @returns {string} empty: nothing is known */
export function words(component, state) {
  const limits = run.plan?.supervisors?.[component];
  const none = (/** @type {string} */ key) => (limits ? `no command accepted for ${limits[key]} ms` : "no command accepted");
  const refused = limits ? `; commands older than ${limits.oldest_ms} ms are refused` : "";
  const again = limits ? ` until commands are good for ${limits.recover_ms} ms${ENGAGE[limits.engage] ?? ""}` : "";
  /** @type {Record<string, string>} */
  const known = {
    normal: "commands arrive in time: the robot follows, as far as it can reach",
    degraded: "commands come late, get lost or are refused: the robot follows slowly",
    hold: `${none("hold_ms")}: the supervisor stops the robot${refused}`,
    "safe stop": `${none("stop_ms")}: the robot stays stopped${again}${refused}`,
    recovering: "commands are back: the robot goes to the hand, slowly",
  };
  return known[state] ?? "";
}
