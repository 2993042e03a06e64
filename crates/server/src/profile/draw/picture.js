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
  const all = { x: 0, w: 100, y: 0 };
  boxes.forEach((it) => it.box.addEventListener('click', () => zoom(it)));
  const tool = (x, label, does) => {
    const text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
    text.setAttribute('class', 'tool');
    text.setAttribute('x', x);
    text.setAttribute('y', +flame.getAttribute('y') - 62);
    text.textContent = label;
    text.addEventListener('click', does);
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
  addEventListener('keydown', (key) => {
    if (key.key === 'Escape') zoom(all);
    if (key.key === '/') { key.preventDefault(); search(); }
  });
  flame.addEventListener('dblclick', () => zoom(all));
})();
//]]>
