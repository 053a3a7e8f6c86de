// What every view's script begins with: elements from data (text is always text), and the numbered wire.

// Control, direction-changing and invisible characters are shown, not obeyed (the kernel does the same).
const odd = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;
const shown = (text) => String(text).replace(odd, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

const el = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'text') node.textContent = shown(value);
    else if (key === 'value' || key === 'checked' || key === 'disabled' || key === 'selected') node[key] = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
};

const setText = (node, text) => {
  const now = shown(text);
  if (node.textContent !== now) node.textContent = now;
};

const took = (seconds) => seconds >= 1 ? `${seconds.toFixed(2)} s`
  : seconds >= 0.01 ? `${(seconds * 1000).toFixed(0)} ms` : `${(seconds * 1000).toFixed(1)} ms`;

let serial = 0;
const fresh = (word) => `jnb-${word}-${++serial}-${Math.random().toString(36).slice(2, 8)}`;

// view: {empty(), load(state, snapshot), change(state, change), draw(root, model, state) -> {all(), some(changes)}}
const serve = (view) => () => {
  let seq = -1;
  const state = view.empty();
  const drawn = new Set();
  const load = (snapshot) => {
    if (!snapshot || snapshot.seq === undefined || snapshot.seq < seq) return;
    seq = snapshot.seq;
    view.load(state, snapshot.state);
    drawn.forEach((one) => one.all());
  };
  return {
    initialize({ model }) {
      load(model.get('snapshot'));
      model.on('change:snapshot', () => load(model.get('snapshot')));
      model.on('msg:custom', (message) => {
        if (message.op === 'all') return load(message.snapshot);
        if (message.op !== 'delta' || message.seq <= seq) return;
        if (message.seq !== seq + 1) model.send({ op: 'resync', have: seq });  // something was dropped
        seq = message.seq;
        for (const change of message.changes) view.change(state, change);
        drawn.forEach((one) => one.some(message.changes));
      });
      model.send({ op: 'hello', have: seq });
    },
    render({ model, el: root }) {
      root.classList.add('jnb');
      const one = view.draw(root, model, state);
      one.all();
      drawn.add(one);
      return () => drawn.delete(one);
    },
  };
};
