'use strict';
// Draws the data in #view (its format: page_data.hpp): the state at one time, which the slider, the buttons and the
// keys change. Times and sums are computed by hips plan, not here.
const view = JSON.parse(document.getElementById('view').textContent);
const id = (name) => document.getElementById(name);
const root = getComputedStyle(document.documentElement);
const [FROM, TO, LANE, STAGE, PHASE, BYTES, BEGIN, END, FIRST, COUNT, PASSAGES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const laneColour = (lane) => `var(--lane${lane % 8})`;
const colour = (name) => root.getPropertyValue(name).trim();

function timeText(ns) {
  if (view.end < 1e4) return `${ns.toFixed(0)} ns`;
  if (view.end < 1e6) return `${(ns / 1e3).toFixed(1)} us`;
  if (view.end < 1e9) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e9).toFixed(2)} s`;
}
function bytesText(bytes) {
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['KB', 1e3]]) {
    if (bytes >= size) return `${(bytes / size).toFixed(1)} ${unit}`;
  }
  return `${bytes} B`;
}
const serverOf = (rank) => Math.floor(rank / view.perServer);
const rankName = (rank) =>
  view.servers[serverOf(rank)] + (view.perServer > 1 ? ` rank ${rank}` : '');

// --- The state: for each rank and block the number of its sum, -1 being the rank's own input.
const state = { time: 0, applied: 0, sums: new Int32Array(view.ranks * view.blocks).fill(-1) };
function moveTo(time) {
  time = Math.min(Math.max(time, 0), view.end);
  if (time < state.time) { state.applied = 0; state.sums.fill(-1); }
  state.time = time;
  for (; state.applied < view.holdings.length && view.holdings[state.applied][0] <= time; ++state.applied) {
    const [, rank, first, count, sum] = view.holdings[state.applied];
    state.sums.fill(sum, rank * view.blocks + first, rank * view.blocks + first + count);
  }
}
const moments = [...new Set([0, ...view.holdings.map((each) => each[0])])].sort((a, b) => a - b);

// --- Colours of sums, computed again when the colour scheme changes.
let shades = [], own = '', whole = '';
function mix(from, to, share) {
  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [a, b] = [parts(from), parts(to)];
  return `rgb(${a.map((value, i) => Math.round(value + (b[i] - value) * share)).join(',')})`;
}
const weight = (count) => view.ranks < 3 ? 1 : Math.log(count) / Math.log(view.ranks);
function chooseColours() {
  own = colour('--own');
  whole = colour('--whole');
  shades = view.sums.map(([count]) => count === view.ranks ? whole
    : count === 1 ? own : mix(colour('--part-from'), colour('--part-to'), weight(count)));
}

const kFont = '11.5px system-ui, sans-serif';
function sized(canvas, width, height) {
  const most = 60e6;  // pixels; browsers fail with more
  const scale = Math.min(window.devicePixelRatio || 1, Math.sqrt(most / (width * height)));
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  context.font = kFont;
  context.textBaseline = 'middle';
  return context;
}
function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  while (text.length > 1 && context.measureText(`${text}…`).width > width) text = text.slice(0, -1);
  return `${text}…`;
}

// --- The wiring: a bar in each server, colours on active cables.
const cables = new Map();  // "server:NIC" to the path
for (const path of document.querySelectorAll('.wiring .cable')) {
  for (const end of path.dataset.ends.split(' ')) cables.set(end, path);
}
const bars = [];
for (const node of document.querySelectorAll('.wiring .node')) {
  const box = node.querySelector('rect');
  const bar = { part: null, whole: null, width: box.width.baseVal.value - 20 };
  for (const kind of ['track', 'part', 'whole']) {
    const rect = document.createElementNS(node.namespaceURI, 'rect');
    rect.setAttribute('class', kind);
    rect.setAttribute('x', box.x.baseVal.value + 10);
    rect.setAttribute('y', box.y.baseVal.value + box.height.baseVal.value - 8);
    rect.setAttribute('width', kind === 'track' ? bar.width : 0);
    rect.setAttribute('height', 4);
    node.append(rect);
    if (kind !== 'track') bar[kind] = rect;
  }
  for (const text of node.querySelectorAll('text')) text.setAttribute('y', text.y.baseVal[0].value - 4);
  bars[Number(node.dataset.server)] = bar;
}
let lit = [];
const wiring = document.querySelector('.wiring'), firstBox = wiring.querySelector('g');
function drawWiring() {
  const cells = view.perServer * view.blocks;
  for (let server = 0; server < view.servers.length; ++server) {
    let part = 0, complete = 0;
    for (let i = server * cells; i < (server + 1) * cells; ++i) {
      if (state.sums[i] < 0) continue;
      const count = view.sums[state.sums[i]][0];
      if (count === view.ranks) ++complete; else part += weight(count);
    }
    bars[server].whole.setAttribute('width', bars[server].width * complete / cells);
    bars[server].part.setAttribute('width', bars[server].width * (complete + part) / cells);
  }
  const litBefore = new Set(lit);
  for (const path of lit) { path.classList.remove('active'); path.style.stroke = ''; }
  lit = [];
  for (const message of view.messages) {
    if (message[BEGIN] > state.time) break;
    if (message[END] <= state.time) continue;
    for (const [server, nic, , begin, end] of message[PASSAGES]) {
      const path = cables.get(`${server}:${nic}`);
      if (!path || begin > state.time || end <= state.time) continue;
      path.classList.add('active');
      path.style.stroke = laneColour(message[LANE]);
      // Above idle cables on the same line, below the boxes.
      if (!litBefore.has(path)) wiring.insertBefore(path, firstBox);
      lit.push(path);
    }
  }
}

// --- The matrix of sums.
const matrix = { canvas: id('sums'), context: null, left: 0, cell: 0, row: 0, rank: 0, block: 0 };
const kHead = 20;
function layMatrix() {
  const space = matrix.canvas.parentElement.clientWidth;
  const measure = matrix.canvas.getContext('2d');
  measure.font = kFont;
  const names = Array.from({ length: view.ranks }, (_, rank) => measure.measureText(rankName(rank)).width);
  matrix.left = Math.min(170, 18 + Math.ceil(Math.max(...names)));
  matrix.cell = Math.max(3, Math.min(40, (space - matrix.left - 4) / view.blocks));
  matrix.row = Math.max(6, Math.min(26, Math.floor(600 / view.ranks)));
  matrix.context = sized(matrix.canvas, Math.ceil(matrix.left + matrix.cell * view.blocks + 4),
    kHead + matrix.row * view.ranks + 4);
}
function drawMatrix() {
  const { context, left, cell, row } = matrix;
  const [ink, faint] = [colour('--ink'), colour('--faint')];
  context.clearRect(0, 0, 1e5, 1e5);
  context.fillStyle = faint;
  view.lanes.forEach(([first, count], lane) => {
    const room = count * cell;
    const name = context.measureText(`lane ${lane}`).width < room - 2 ? `lane ${lane}` : `${lane}`;
    if (room > 14) context.fillText(name, left + first * cell + 2, kHead / 2);
  });
  const every = Math.ceil(13 / row), gap = cell > 10 ? 1 : 0;
  for (let rank = 0; rank < view.ranks; ++rank) {
    const y = kHead + rank * row;
    context.fillStyle = ink;
    if (rank % every === 0) context.fillText(clipped(context, rankName(rank), left - 12), 6, y + row / 2);
    for (let block = 0; block < view.blocks;) {
      const sum = state.sums[rank * view.blocks + block];
      let end = block + 1;
      if (gap === 0) while (end < view.blocks && state.sums[rank * view.blocks + end] === sum) ++end;
      context.fillStyle = sum < 0 ? own : shades[sum];
      context.fillRect(left + block * cell, y, (end - block) * cell - gap, row - (row > 10 ? 1 : 0.5));
      block = end;
    }
  }
  context.strokeStyle = colour('--card');
  context.lineWidth = 2;
  for (const [first] of view.lanes.slice(1)) {
    context.beginPath();
    context.moveTo(left + first * cell - 0.5, kHead);
    context.lineTo(left + first * cell - 0.5, kHead + row * view.ranks);
    context.stroke();
  }
  context.strokeStyle = colour('--cursor');
  context.strokeRect(left + matrix.block * cell - 0.5, kHead + matrix.rank * row - 0.5, cell, row);
}
function sayCell() {
  const sum = state.sums[matrix.rank * view.blocks + matrix.block];
  const what = sum < 0 ? 'its own input only'
    : view.sums[sum][0] === view.ranks ? 'the sum of all ranks' : `the sum of ranks ${view.sums[sum][1]}`;
  id('sum-said').textContent = `${rankName(matrix.rank)}, block ${matrix.block}: ${what}`;
}
function pointAt(rank, block) {
  matrix.rank = Math.min(Math.max(rank, 0), view.ranks - 1);
  matrix.block = Math.min(Math.max(block, 0), view.blocks - 1);
  drawMatrix();
  sayCell();
}
matrix.canvas.addEventListener('pointermove', (event) => {
  const rank = Math.floor((event.offsetY - kHead) / matrix.row), block = Math.floor((event.offsetX - matrix.left) / matrix.cell);
  if (rank >= 0 && rank < view.ranks && block >= 0 && block < view.blocks) pointAt(rank, block);
});
matrix.canvas.addEventListener('keydown', (event) => {
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!move) return;
  event.preventDefault();
  event.stopPropagation();
  pointAt(matrix.rank + move[0], matrix.block + move[1]);
});

// --- The timeline: a row for each NIC, with sent messages above and received ones below.
const chart = { width: 0, row: 0, rows: view.servers.length * view.rails };
function layTimeline() {
  const scroll = id('bars').closest('.scroll'), rows = chart.rows, kNames = 130;
  chart.row = rows > 100 ? 14 : rows > 40 ? 16 : 22;
  chart.width = Math.max(300, scroll.clientWidth - kNames - 2) * Number(id('zoom').value);
  const height = kHead + rows * chart.row;
  const names = sized(id('labels'), kNames, height), context = sized(id('bars'), chart.width, height);
  const line = colour('--line');
  names.fillStyle = colour('--ink');
  const small = chart.row * view.rails < 15 ? Math.ceil(15 / (chart.row * view.rails)) : 1;
  for (let server = 0; server < view.servers.length; ++server) {
    const top = kHead + server * view.rails * chart.row;
    names.fillStyle = colour('--ink');
    if (server % small === 0) names.fillText(clipped(names, view.servers[server], 68), 8, top + chart.row / 2);
    names.fillStyle = colour('--faint');
    for (let nic = 0; nic < view.rails; ++nic) names.fillText(`NIC ${nic}`, 84, top + (nic + 0.5) * chart.row);
    names.fillStyle = context.fillStyle = line;
    names.fillRect(0, top - 0.5, kNames, 1);
    context.fillRect(0, top - 0.5, chart.width, 1);
  }
  // Marks at round times.
  let unit = 10 ** Math.floor(Math.log10(Math.max(view.end, 1) / 4));
  while (view.end / unit > 10 * Number(id('zoom').value)) unit *= unit.toString()[0] === '2' ? 2.5 : 2;
  for (let at = 0; at <= view.end; at += unit) {
    const x = at / Math.max(view.end, 1) * chart.width;
    context.fillStyle = line;
    context.fillRect(x, 0, 1, height);
    context.fillStyle = colour('--faint');
    if (x < chart.width - 60) context.fillText(timeText(at), x + 4, kHead / 2);
  }
  for (const message of view.messages) {
    context.fillStyle = colour(`--lane${message[LANE] % 8}`);
    context.globalAlpha = message[PHASE] === 0 ? 1 : 0.5;
    for (const [server, nic, out, begin, end] of message[PASSAGES]) {
      const half = chart.row / 2 - 1, x = begin / view.end * chart.width;
      context.fillRect(x, kHead + (server * view.rails + nic) * chart.row + (out ? 1 : 1 + half),
        Math.max((end - begin) / view.end * chart.width - 0.7, 0.6), half - 0.5);
    }
  }
  context.globalAlpha = 1;
}
function sayMessage(message) {
  id('bar-said').textContent = `${rankName(message[FROM])} to ${rankName(message[TO])}: ${bytesText(message[BYTES])}, ` +
    `${blocksText(message)}, lane ${message[LANE]}, stage ${message[STAGE]} (${phaseText(message)}), ` +
    `${timeText(message[BEGIN])} to ${timeText(message[END])}`;
}
const blocksText = (message) =>
  message[COUNT] === 1 ? `block ${message[FIRST]}` : `blocks ${message[FIRST]}-${message[FIRST] + message[COUNT] - 1}`;
const phaseText = (message) => message[PHASE] === 0 ? 'scatter' : 'gather';
id('bars').addEventListener('pointermove', (event) => {
  const row = Math.floor((event.offsetY - kHead) / chart.row), time = event.offsetX / chart.width * view.end;
  const out = (event.offsetY - kHead) % chart.row < chart.row / 2 ? 1 : 0;
  for (const message of view.messages) {
    if (message[BEGIN] > time) break;
    if (message[PASSAGES].some(([server, nic, leaves, begin, end]) =>
      server * view.rails + nic === row && leaves === out && begin <= time && time < end)) {
      sayMessage(message);
      return;
    }
  }
});
id('bars').addEventListener('click', (event) => show(event.offsetX / chart.width * view.end));

// --- The table of messages.
view.servers.forEach((name, server) => id('server').append(new Option(name, server)));
function fillTable() {
  if (!id('messages').open) return;
  const server = Number(id('server').value);
  id('rows').replaceChildren(...view.messages
    .filter((message) => serverOf(message[FROM]) === server || serverOf(message[TO]) === server)
    .map((message) => {
      const line = document.createElement('tr');
      for (const text of [timeText(message[BEGIN]), timeText(message[END]), phaseText(message), message[LANE],
        message[STAGE], rankName(message[FROM]), rankName(message[TO]), blocksText(message), bytesText(message[BYTES])]) {
        line.insertCell().textContent = text;
      }
      return line;
    }));
}
id('messages').addEventListener('toggle', fillTable);
id('server').addEventListener('change', fillTable);

// --- Time.
let playing = false, before = 0;
const kSecondsOfPlay = 15;
function show(time) {
  moveTo(time);
  drawWiring();
  drawMatrix();
  sayCell();
  const share = view.end === 0 ? 1 : state.time / view.end;
  id('cursor').style.left = `${share * chart.width}px`;
  id('time').value = Math.round(share * 10000);
  id('time').setAttribute('aria-valuetext', timeText(state.time));
  id('now').textContent = `${timeText(state.time)} of ${timeText(view.end)}`;
}
function play(on) {
  playing = on;
  id('play').textContent = on ? 'Pause' : 'Play';
  if (!on) return;
  if (state.time >= view.end) show(0);
  before = performance.now();
  requestAnimationFrame(tick);
}
function tick(now) {
  if (!playing) return;
  show(state.time + (now - before) / 1000 / kSecondsOfPlay * view.end * Number(id('speed').value));
  before = now;
  if (state.time >= view.end) play(false); else requestAnimationFrame(tick);
}
function step(forward) {
  play(false);
  const next = forward ? moments.find((at) => at > state.time) : moments.findLast((at) => at < state.time);
  show(next ?? (forward ? view.end : 0));
}
id('play').addEventListener('click', () => play(!playing));
id('first').addEventListener('click', () => { play(false); show(0); });
id('back').addEventListener('click', () => step(false));
id('forward').addEventListener('click', () => step(true));
id('time').addEventListener('input', () => { play(false); show(id('time').value / 10000 * view.end); });
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('button, select, summary, input')) return;
  if (event.key === ' ') play(!playing);
  else if (event.key === 'ArrowRight') step(true);
  else if (event.key === 'ArrowLeft') step(false);
  else return;
  event.preventDefault();
});
id('save').addEventListener('click', () => {
  const link = document.createElement('a');
  link.download = 'plan.json';
  link.href = URL.createObjectURL(new Blob([id('plan').textContent], { type: 'application/json' }));
  link.click();
});

// --- Draws everything, and again when the window or the colour scheme changes.
function layAll() {
  chooseColours();
  layMatrix();
  layTimeline();
  show(state.time);
}
id('zoom').addEventListener('change', () => { layTimeline(); show(state.time); });
view.lanes.forEach((lane, index) => {
  const entry = document.createElement('span');
  entry.textContent = `lane ${index}`;
  entry.style.setProperty('--swatch', laneColour(index));
  id('lanes').append(entry);
});
id('lanes').append('scatter full, gather pale');
window.addEventListener('resize', layAll);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', layAll);
const asked = Number((location.hash.match(/^#t=([0-9.]+)$/) || [])[1] || 0);  // "#t=0.5": half-way
layAll();
show(asked * view.end);
