// A headset by WebXR: the picture stands before the wearer, a half of it for each eye where it is a pair; the pose of the
// head goes back. Where the head steers the camera, the picture goes with the head. Feature-detected: without navigator.xr
// nothing of this shows. Not tried with a headset.
import { $ } from "./dom.js";
import { clock, send, want } from "./hand.js";

const SCREEN_M = { distance: 2, width: 2.4 }; // where the picture stands, and how wide
const xr = { session: null, gl: null, program: null, bitmap: null, eyes: 1, frames: 0, fresh: false };
window.xr = xr; // for whoever looks at the page from outside

const VERTEX = `#version 300 es
uniform mat4 projection, view; uniform vec2 size; uniform vec2 part; out vec2 at;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  at = vec2(mix(part.x, part.y, corner.x), 1.0 - corner.y);
  gl_Position = projection * view * vec4((corner - 0.5) * size, -${SCREEN_M.distance.toFixed(1)}, 1.0);
}`;
const FRAGMENT = `#version 300 es
precision mediump float; uniform sampler2D picture; in vec2 at; out vec4 colour;
void main() { colour = texture(picture, at); }`;

export async function offerHeadset(say) {
  if (!navigator.xr || !(await navigator.xr.isSessionSupported("immersive-vr").catch(() => false))) return;
  const button = $("wear");
  button.hidden = false;
  $("follows").hidden = false;
  button.onclick = () => (xr.session ? xr.session.end() : enter(button).catch((error) => say(`headset: ${error.message}`, true)));
}

async function enter(button) {
  const gl = document.createElement("canvas").getContext("webgl2", { xrCompatible: true });
  if (!gl) throw new Error("this browser has no WebGL 2");
  const program = prepared(gl);
  const session = await navigator.xr.requestSession("immersive-vr", { optionalFeatures: ["local-floor"] });
  Object.assign(xr, { session, gl, program, frames: 0 });
  try {
    await begin(session, gl, button);
  } catch (error) {
    await session.end().catch(() => {}); // or the wearer stays in the dark
    throw error;
  }
}

async function begin(session, gl, button) {
  session.addEventListener("end", () => {
    xr.session = null;
    want(false);
    button.textContent = "Enter the headset";
  });
  session.updateRenderState({ baseLayer: new XRWebGLLayer(session, gl) });
  const space = await session.requestReferenceSpace("local");
  want(true);
  button.textContent = "Leave the headset";
  const frame = (now, current) => {
    if (xr.session !== session) return;
    session.requestAnimationFrame(frame);
    const pose = current.getViewerPose(space);
    if (pose) look(session, pose, now);
  };
  session.requestAnimationFrame(frame);
}

function prepared(gl) {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return program;
}

// The newest picture, from the thread that decodes them.
export function wear(bitmap, eyes) {
  if (xr.bitmap) xr.bitmap.close();
  Object.assign(xr, { bitmap, eyes, fresh: true });
}

// The view of an eye on the picture: from where it is in the room, or, if the picture goes with the head, from where it is in
// the head.
function placed(view, pose) {
  const room = view.transform.inverse.matrix;
  return $("with-head").checked ? product(room, pose.transform.matrix) : room;
}

// Of two matrices of 4 x 4, column by column.
function product(a, b) {
  const c = new Float32Array(16);
  for (let i = 0; i < 16; i++) for (let k = 0; k < 4; k++) c[i] += a[(i % 4) + 4 * k] * b[4 * (i >> 2) + k];
  return c;
}

function look(session, pose, now) {
  const { position: p, orientation: q } = pose.transform;
  send({ k: "head", s: clock(), p: [[Math.max(performance.now() - now, 0), p.x, p.y, p.z, q.x, q.y, q.z, q.w]] });
  const { gl, program, bitmap, eyes } = xr;
  if (!bitmap) return;
  const layer = session.renderState.baseLayer;
  gl.bindFramebuffer(gl.FRAMEBUFFER, layer.framebuffer);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.useProgram(program);
  if (xr.fresh) gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
  xr.fresh = false;
  const uniform = (name) => gl.getUniformLocation(program, name);
  gl.uniform2f(uniform("size"), SCREEN_M.width, (SCREEN_M.width * bitmap.height * eyes) / bitmap.width);
  for (const view of pose.views) {
    const box = layer.getViewport(view);
    gl.viewport(box.x, box.y, box.width, box.height);
    gl.uniformMatrix4fv(uniform("projection"), false, view.projectionMatrix);
    gl.uniformMatrix4fv(uniform("view"), false, placed(view, pose));
    const left = eyes === 2 && view.eye === "right" ? 0.5 : 0;
    gl.uniform2f(uniform("part"), left, eyes === 2 ? left + 0.5 : 1);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }
  xr.frames += 1;
}
