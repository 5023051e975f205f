// @ts-check
// What the states of a supervisor mean, in plain words.

/** By the name of the state. @type {Record<string, string>} */
export const WORDS = {
  normal: "commands arrive in time: the robot follows",
  degraded: "commands come late or get lost: the robot follows slowly",
  hold: "no commands: the supervisor stops the robot",
  "safe stop": "no commands: the robot stays stopped",
  recovering: "commands are back: the robot goes to the hand, slowly",
};
