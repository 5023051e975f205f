// Pictures, in a thread of their own: received, decoded, drawn, and the code in them read, so that the page is free for
// the hand. Says to the page when each one was shown; gives it the picture too while a headset wants it.

let canvas = null;
let drawn = null;
let address = null;
let newest = null; // received while a picture is being decoded
let decoding = false;
let wanted = false; // whether the page wants the pictures themselves

onmessage = ({ data }) => {
  if ("wanted" in data) {
    wanted = data.wanted;
    return;
  }
  ({ canvas, address } = data);
  drawn = canvas.getContext("2d", { willReadFrequently: true });
  connect();
};

function connect() {
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  socket.onmessage = (event) => {
    newest = event.data;
    if (!decoding) showAll();
  };
  socket.onclose = () => setTimeout(connect, 1000);
}

// One after the other, so that none is shown over a newer one; those that are overtaken are left out.
async function showAll() {
  decoding = true;
  while (newest) {
    const data = newest;
    newest = null;
    await show(data).catch((error) => console.warn(`a picture that cannot be shown: ${error.message}`));
  }
  decoding = false;
}

async function show(data) {
  const head = new DataView(data);
  const bitmap = await createImageBitmap(new Blob([new Uint8Array(data, 16)], { type: "image/jpeg" }));
  if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
  }
  drawn.drawImage(bitmap, 0, 0);
  const taken = readCode();
  const told = {
    at: performance.timeOrigin + performance.now(),
    runOffsetMs: Number(head.getBigInt64(8, true)) / 1e6,
    taken,
    top: taken ? Math.ceil(2.25 * Math.floor(canvas.width / 40)) : 0, // the code's rows, and what coders blur of them
    eyes: head.getUint8(1),
    width: canvas.width,
    height: canvas.height,
  };
  if (wanted) {
    postMessage({ ...told, bitmap }, [bitmap]);
  } else {
    bitmap.close();
    postMessage(told);
  }
}

// The code along the upper edge (tcpsbed/media/picture_code.py): 2 rows of 40 blocks, time in us, number, CRC-16.
function readCode() {
  const side = Math.floor(canvas.width / 40);
  if (side < 4 || canvas.height < 2 * side) return null;
  const { data, width } = drawn.getImageData(0, 0, 40 * side, 2 * side);
  const bytes = new Uint8Array(10);
  const margin = Math.floor(side / 4);
  for (let bit = 0; bit < 80; bit++) {
    const left = (bit % 40) * side;
    const top = Math.floor(bit / 40) * side;
    let sum = 0;
    let n = 0;
    for (let y = top + margin; y < top + side - margin; y++) {
      for (let x = left + margin; x < left + side - margin; x++) {
        const at = 4 * (y * width + x);
        sum += data[at] + data[at + 1] + data[at + 2];
        n += 3;
      }
    }
    if (sum / n > 127.5) bytes[bit >> 3] |= 0x80 >> (bit & 7);
  }
  let crc = 0xffff;
  for (let i = 0; i < 8; i++) {
    crc ^= bytes[i] << 8;
    for (let k = 0; k < 8; k++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  if (crc !== ((bytes[8] << 8) | bytes[9])) return null;
  let us = 0;
  for (let i = 0; i < 5; i++) us = us * 256 + bytes[i];
  return { ms: us / 1000, number: (bytes[5] << 16) | (bytes[6] << 8) | bytes[7] };
}
