// The line to the server, on a thread of its own: it dials again whenever the line
// is gone, and turns what comes into changes and pictures. A worker, so that many
// pictures a second are decoded beside the page, and not in its way.

const FIRST_WAIT = 250;
const LONGEST_WAIT = 2000;
let socket = null;
let wait = FIRST_WAIT;
let wanted = [];
// Whose picture is being decoded, and the one that came meanwhile.
const busy = new Map();

async function dial() {
  try {
    // A socket that finds nobody fills the console with complaints; this does not.
    await fetch("/icon.svg", { cache: "no-store" });
  } catch {
    return again();
  }
  const at = new URL("/live", self.location.href);
  at.protocol = "ws:";
  socket = new WebSocket(at);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    wait = FIRST_WAIT;
    postMessage({ line: true });
    socket.send(JSON.stringify(wanted));
  };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") postMessage({ delta: JSON.parse(data) });
    else take(new Uint8Array(data));
  };
  socket.onclose = () => {
    postMessage({ line: false });
    again();
  };
}

function again() {
  setTimeout(dial, wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

function take(bytes) {
  const name = new TextDecoder().decode(bytes.subarray(1, 1 + bytes[0]));
  const jpeg = bytes.subarray(1 + bytes[0]);
  if (busy.has(name)) busy.set(name, jpeg);
  else decode(name, jpeg);
}

async function decode(name, jpeg) {
  busy.set(name, null);
  try {
    const picture = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
    postMessage({ name, picture }, [picture]);
  } catch {
    // A picture that is none is not shown; the next one comes soon.
  }
  const next = busy.get(name);
  busy.delete(name);
  if (next) decode(name, next);
}

onmessage = ({ data }) => {
  wanted = data;
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(wanted));
};
dial();
