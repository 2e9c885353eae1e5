// A treemap: areas in proportion to values, as square as they come (squarified).

const LINE = 19;
const SHOWN = 400;
const EDGES = 12;
const canvas = document.createElement("canvas").getContext("2d");

// Draw groups, each with its parts where there is room, and again when the width changes.
export function drawnMap(place, groups) {
  let width = 0;
  const draw = () => {
    const now = place.clientWidth;
    if (!now || now === width) return;
    width = now;
    canvas.font = letters(place);
    place.replaceChildren(...tiles(groups, { x: 0, y: 0, width, height: place.clientHeight }));
    performance.mark("toolfold-map");
  };
  const watching = new ResizeObserver(draw);
  watching.observe(place);
  draw();
  return () => watching.disconnect();
}

// The letters of a tile, as the style sheet has them.
function letters(place) {
  const tile = document.createElement("span");
  tile.className = "tile";
  place.append(tile);
  const { font } = getComputedStyle(tile);
  tile.remove();
  return font;
}

function tiles(groups, room) {
  const shown = together(groups);
  const places = treemap(shown.map((each) => each.value), room);
  return shown.flatMap((each, i) => {
    const own = places[i];
    if (!own) return [];
    const inner = { x: own.x + 2, y: own.y + LINE, width: own.width - 4, height: own.height - LINE - 2 };
    if (!each.parts || inner.width < 60 || inner.height < 30) return [tile(each, own)];
    const parts = together(each.parts, Math.floor((inner.width * inner.height) / 500));
    const inside = treemap(parts.map((part) => part.value), inner);
    return [tile(each, own, "group"), ...parts.map((part, j) => inside[j] && tile({ ...part, hue: each.hue }, inside[j]))];
  });
}

// The dearest, and one tile for all others: a tile of two pixels shows nothing.
function together(items, most = SHOWN) {
  const bound = Math.max(Math.min(most, SHOWN), 4);
  if (items.length <= bound) return items;
  const rest = items.slice(bound - 1);
  const value = rest.reduce((sum, item) => sum + item.value, 0);
  const other = { name: `${rest.length.toLocaleString("en")} others`, value, hue: rest[0].hue, about: `${value.toLocaleString("en")} tokens` };
  return [...items.slice(0, bound - 1), other];
}

function tile(item, place, kind = "") {
  const made = document.createElement(item.link ? "a" : "span");
  made.className = `tile ${kind}`;
  made.title = `${item.name}: ${item.about}`;
  if (item.link) {
    made.href = item.link;
    made.tabIndex = -1;
  }
  const style = made.style;
  style.setProperty("--hue", item.hue);
  style.left = `${place.x}px`;
  style.top = `${place.y}px`;
  style.width = `${place.width}px`;
  style.height = `${place.height}px`;
  made.append(kind ? (item.label ?? item.name) : fitted(item.label ?? item.name, place.width - EDGES, place.height - 4));
  if ((kind || item.parts) && place.width > 150) {
    const about = document.createElement("small");
    about.textContent = ` ${item.about}`;
    made.append(about);
  }
  return made;
}

// A name in the lines that there is room for, broken behind its joints; what is cut says so.
function fitted(name, width, height) {
  const most = Math.floor(height / parseFloat(canvas.font.match(/[\d.]+px/)[0]) / 1.25);
  if (width < 38 || most < 1) return "";
  // A joint at the end of a line may go; it is in the tile's title.
  const bare = (text) => text.replace(/[_.\s-]+$/, "");
  const fits = (text) => canvas.measureText(text).width <= width;
  const lines = [];
  for (const piece of name.match(/[^_.\s-]*[_.\s-]*/g).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && fits(bare(last + piece))) lines[lines.length - 1] = last + piece;
    else lines.push(piece);
  }
  const cut = (line, more) => {
    if (!more && !fits(line) && fits(bare(line))) return bare(line);
    let text = line;
    while (text && !fits(text + (more || text !== line ? "…" : ""))) text = text.slice(0, -1);
    return more || text !== line ? `${text}…` : text;
  };
  return lines.slice(0, most).map((line, i) => cut(line, i === most - 1 && lines.length > most)).join("\n");
}

export function treemap(values, room) {
  const total = values.reduce((sum, value) => sum + value, 0);
  if (!total || room.width <= 0 || room.height <= 0) return [];
  const scale = (room.width * room.height) / total;
  const areas = values.map((value) => value * scale);
  const places = [];
  let left = room;
  let from = 0;
  while (from < areas.length) {
    const side = Math.min(left.width, left.height);
    let to = from + 1;
    let sum = areas[from];
    let now = worst(areas, from, to, sum, side);
    while (to < areas.length) {
      const next = worst(areas, from, to + 1, sum + areas[to], side);
      if (next > now) break;
      sum += areas[to];
      now = next;
      to += 1;
    }
    left = laid(areas, from, to, sum, left, places);
    from = to;
  }
  return places;
}

// Values come sorted, so that the first and the last of a row are its most uneven.
function worst(areas, from, to, sum, side) {
  const square = side * side;
  const most = Math.max(areas[from], areas[to - 1]);
  const least = Math.min(areas[from], areas[to - 1]);
  return Math.max((square * most) / (sum * sum), (sum * sum) / (square * least || 1));
}

function laid(areas, from, to, sum, room, places) {
  const upright = room.width >= room.height;
  const thickness = sum / (upright ? room.height : room.width) || 0;
  let offset = 0;
  for (let i = from; i < to; i += 1) {
    const length = thickness ? areas[i] / thickness : 0;
    places.push(
      upright
        ? { x: room.x, y: room.y + offset, width: thickness, height: length }
        : { x: room.x + offset, y: room.y, width: length, height: thickness },
    );
    offset += length;
  }
  return upright
    ? { ...room, x: room.x + thickness, width: room.width - thickness }
    : { ...room, y: room.y + thickness, height: room.height - thickness };
}
