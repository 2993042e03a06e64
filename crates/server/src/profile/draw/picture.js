//<![CDATA[
(() => {
  const flame = document.getElementById('flame');
  if (!flame) return;
  const boxes = [...flame.querySelectorAll(':scope > svg')].map((box) => ({
    box, x: parseFloat(box.getAttribute('x')), w: parseFloat(box.getAttribute('width')), y: +box.getAttribute('y'),
    name: box.querySelector('title').textContent, text: box.querySelector('text'),
  }));
  const zoom = (to) => boxes.forEach(({ box, x, w, y, text }) => {
    const above = y < to.y && x <= to.x + 1e-3 && x + w >= to.x + to.w - 1e-3;
    const inside = y >= to.y && x >= to.x - 1e-3 && x + w <= to.x + to.w + 1e-3;
    const part = above ? [0, 100] : [(x - to.x) / to.w * 100, w / to.w * 100];
    box.style.display = above || inside ? '' : 'none';
    box.classList.toggle('above', above);
    box.setAttribute('x', part[0] + '%');
    box.setAttribute('width', part[1] + '%');
    text.style.display = part[1] / 100 * innerWidth > 14 ? 'inline' : 'none';
  });
  // By keyboard: one box is a stop of the tab key, and the arrows lead from it to those around it.
  const near = 1e-3;
  const shown = ({ box }) => box.style.display !== 'none';
  const first = (order, fits) => boxes.filter((it) => shown(it) && fits(it)).sort(order)[0];
  const within = (one, other) => one.x >= other.x - near && one.x + one.w <= other.x + other.w + near;
  const steps = {
    ArrowUp: (it) => first((a, b) => b.y - a.y, (o) => o.y < it.y && within(it, o)),
    ArrowDown: (it) => first((a, b) => a.y - b.y || b.w - a.w, (o) => o.y > it.y && within(o, it)),
    ArrowLeft: (it) => first((a, b) => b.x - a.x, (o) => o.y === it.y && o.x < it.x - near),
    ArrowRight: (it) => first((a, b) => a.x - b.x, (o) => o.y === it.y && o.x > it.x + near),
  };
  let here = boxes[0];
  const go = (to) => {
    if (!to) return;
    here.box.setAttribute('tabindex', '-1');
    here = to;
    here.box.setAttribute('tabindex', '0');
    here.box.focus();
  };
  boxes.forEach(({ box, name }) => {
    box.setAttribute('role', 'button');
    box.setAttribute('aria-label', name);
    box.setAttribute('tabindex', '-1');
  });
  if (here) here.box.setAttribute('tabindex', '0');
  flame.addEventListener('keydown', (key) => {
    if (key.key === 'Enter' || key.key === ' ') zoom(here);
    else if (steps[key.key]) go(steps[key.key](here));
    else return;
    key.preventDefault();
  });
  const all = { x: 0, w: 100, y: 0 };
  boxes.forEach((it) => it.box.addEventListener('click', () => { zoom(it); go(it); }));
  const tool = (x, label, does) => {
    const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
    text.setAttribute('class', 'tool');
    text.setAttribute('x', x);
    text.setAttribute('y', +flame.getAttribute('y') - 62);
    text.textContent = label;
    text.setAttribute('role', 'button');
    text.setAttribute('tabindex', '0');
    text.addEventListener('click', does);
    text.addEventListener('keydown', (key) => {
      if (key.key !== 'Enter' && key.key !== ' ') return;
      key.preventDefault();
      does();
    });
    document.documentElement.append(text);
    return text;
  };
  const search = () => {
    const wanted = (prompt('Functions whose name contains') || '').toLowerCase();
    let sum = 0, end = -1;
    boxes.filter(({ box, name }) => {
      const hit = wanted !== '' && name.toLowerCase().includes(wanted);
      box.classList.toggle('found', hit);
      return hit;
    }).sort((a, b) => a.x - b.x || a.y - b.y).forEach(({ x, w }) => {
      if (x + w > end + 1e-3) { sum += x + w - Math.max(x, end); end = x + w; }
    });
    find.textContent = wanted ? `${wanted}: ${sum.toFixed(1)} %` : 'Search';
  };
  const find = tool('98%', 'Search', search);
  const whole = tool('98%', 'Show all', () => zoom(all));
  // One above the other: what is searched for may be long.
  find.setAttribute('y', +find.getAttribute('y') - 20);
  addEventListener('keydown', (key) => { if (key.key === 'Escape') zoom(all); });
  // Not everywhere: a key without others belongs to whoever reads by speech.
  flame.addEventListener('keydown', (key) => { if (key.key === '/') { key.preventDefault(); search(); } });
  flame.addEventListener('dblclick', () => zoom(all));
})();
//]]>
