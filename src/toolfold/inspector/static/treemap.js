// A treemap: areas in proportion to values, as square as they come (squarified).

export function treemap(values, width, height) {
  const total = values.reduce((sum, value) => sum + value, 0);
  if (!total) return [];
  const scale = (width * height) / total;
  const areas = values.map((value) => value * scale);
  const places = [];
  let room = { x: 0, y: 0, width, height };
  let from = 0;
  while (from < areas.length) {
    const side = Math.min(room.width, room.height);
    let to = from + 1;
    while (to < areas.length && worst(areas, from, to + 1, side) <= worst(areas, from, to, side)) {
      to += 1;
    }
    room = laid(areas, from, to, room, places);
    from = to;
  }
  return places;
}

function sum(areas, from, to) {
  let total = 0;
  for (let i = from; i < to; i += 1) total += areas[i];
  return total;
}

function worst(areas, from, to, side) {
  const total = sum(areas, from, to);
  const thickness = total / side;
  let found = 0;
  for (let i = from; i < to; i += 1) {
    const length = areas[i] / thickness;
    found = Math.max(found, length / thickness, thickness / length);
  }
  return found;
}

function laid(areas, from, to, room, places) {
  const total = sum(areas, from, to);
  const upright = room.width >= room.height;
  const thickness = total / (upright ? room.height : room.width);
  let offset = 0;
  for (let i = from; i < to; i += 1) {
    const length = areas[i] / thickness;
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
