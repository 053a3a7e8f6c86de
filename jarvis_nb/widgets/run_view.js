// A run: its question, a line of facts, rounds and calls, and the answer as it streams.

const run_view = {
  empty: () => ({ run: {}, rounds: new Map(), calls: new Map() }),

  load(state, data) {
    state.run = { ...data.run };
    state.rounds = new Map(data.rounds.map((one) => [one.number, { ...one }]));
    state.calls = new Map(data.calls.map((one) => [one.id, { ...one }]));
  },

  change(state, change) {
    const { is, ...fields } = change;
    const into = (map, key) => map.set(key, Object.assign(map.get(key) || {}, fields));
    if (is === 'call') into(state.calls, fields.id);
    else if (is === 'round') into(state.rounds, fields.number);
    else if (is === 'text') state.run.answer = (state.run.answer || '') + fields.text;
    else Object.assign(state.run, fields);
  },

  draw(root, model, state) {
    const question = el('p', { class: 'jnb-question' });
    const status = el('p', { class: 'jnb-facts', role: 'status' });
    const list = el('div', { class: 'jnb-list', role: 'group', tabindex: '0', 'aria-label': 'Rounds and tool calls' });
    const answer = el('p', { class: 'jnb-answer' });
    const card = el('div', { class: 'jnb-card', role: 'group', 'aria-label': 'Run' }, question, status, list, answer);
    root.append(card);
    const nodes = new Map();
    const dirty = new Set();
    let whole = false;
    let atEnd = true;
    list.addEventListener('scroll', () => { atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 60; });
    let frame = 0;

    const section = (number) => {
      const key = `r${number}`;
      let node = nodes.get(key);
      if (!node) {
        node = el('div', { class: 'jnb-round' }, el('p', { class: 'jnb-facts' }));
        nodes.set(key, node);
        list.append(node);
      }
      return node;
    };

    const paintRound = (round) => {
      const count = [...(round.calls || [])].length;
      const parts = [`Round ${round.number}`, round.choice ? `choice ${round.choice}` : '',
        count ? `${count} call${count === 1 ? '' : 's'}${count > 1 ? ' together' : ''}` : '',
        round.thinking ? 'the model works …' : round.tokens || '', round.repair ? `mended: ${round.repair}` : ''];
      setText(section(round.number).firstChild, parts.filter(Boolean).join(' · '));
    };

    const paintCall = (call, later) => {
      let node = nodes.get(call.id);
      if (!node) {
        node = el('details', { class: 'jnb-call' },
          el('summary', {}, el('span', { class: 'jnb-mark' }), el('b'), el('code'), el('span', { class: 'jnb-result' })),
          el('div', { class: 'jnb-body' }));
        nodes.set(call.id, node);
        const round = call.round || 0;
        if (!later.has(round)) later.set(round, document.createDocumentFragment());
        later.get(round).append(node);
        const known = state.rounds.get(round);
        if (known) { (known.calls = known.calls || new Set()).add(call.id); paintRound(known); }
      }
      const [mark, name, args, result] = node.firstChild.children;
      node.dataset.status = call.status;
      setText(mark, call.mark || '');
      setText(name, call.name || '');
      setText(args, call.arguments || '');
      const said = [call.word, call.step, call.result].filter(Boolean).join(': ');
      setText(result, `→ ${said}${call.seconds ? ` · ${took(call.seconds)}` : ''}`);
      const body = node.lastChild;
      if (call.progress) {
        const label = `Progress of ${call.name}`;
        let bar = body.querySelector('progress');
        if (!bar) {
          bar = el('progress', { max: '1', 'aria-label': label });
          body.replaceChildren(bar, el('span'));
          node.open = true;
        }
        if (call.progress.share === null) bar.removeAttribute('value'); else bar.value = call.progress.share;
        setText(body.lastChild, ` ${call.progress.text}`);
      } else if (call.result && body.dataset.result !== call.result) {
        body.dataset.result = call.result;
        if (body.querySelector('progress')) node.open = false;
        body.replaceChildren(el('pre', { tabindex: '0', text: call.result }));
      }
    };

    const paint = () => {
      frame = 0;
      const later = new Map();
      if (whole) { nodes.clear(); list.replaceChildren(); }
      const rounds = whole ? state.rounds.values() : [...dirty].filter((k) => k[0] === 'round').map((k) => state.rounds.get(k[1]));
      for (const round of rounds) if (round) paintRound(round);
      const calls = whole ? state.calls.values() : [...dirty].filter((k) => k[0] === 'call').map((k) => state.calls.get(k[1]));
      for (const call of calls) if (call && call.name) paintCall(call, later);
      later.forEach((fragment, round) => section(round).append(fragment));
      whole = false;
      dirty.clear();
      const run = state.run;
      setText(question, run.question || '');
      const counted = state.calls.size ? `${state.calls.size.toLocaleString('en')} call${state.calls.size === 1 ? '' : 's'}` : '';
      const facts = run.mark === '▶' ? ['running', counted, run.facts] : [run.status, run.facts];
      setText(status, `${run.mark || ''} ${[...facts, run.warning ? `⚠ ${run.warning}` : ''].filter(Boolean).join(' · ')}`);
      setText(answer, run.answer || (run.problem ? `${run.mark} ${run.problem}` : ''));
      if (atEnd && later.size) list.scrollTop = list.scrollHeight;
    };

    const soon = () => { if (!frame) frame = requestAnimationFrame(paint); };
    const keys = new Map();
    const key = (is, id) => {
      const name = `${is} ${id}`;
      if (!keys.has(name)) keys.set(name, [is, id]);
      return keys.get(name);
    };
    return {
      all() { whole = true; for (const call of state.calls.values()) { const r = state.rounds.get(call.round); if (r) (r.calls = r.calls || new Set()).add(call.id); } paint(); },
      some(changes) { for (const one of changes) dirty.add(key(one.is, one.id ?? one.number)); soon(); },
    };
  },
};
