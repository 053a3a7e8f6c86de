// The policy picker: a row a tool, a requirement, and what comes of it.

const picker = {
  empty: () => ({ tools: [] }),
  load(state, data) { Object.assign(state, data); },
  change(state, change) { Object.assign(state, change); },

  draw(root, model, state) {
    const names = { only: fresh('only'), requirement: fresh('requirement') };
    const choose = (changed) => {
      const now = { visible: state.visible, hidden: state.hidden, requirement: state.requirement, ...changed };
      model.send({ op: 'choose', ...now });
    };
    const all = () => state.tools.map((tool) => tool.name);
    const only = el('input', { type: 'checkbox', id: names.only,
      onchange: () => choose({ visible: only.checked ? all().filter((n) => !state.hidden.includes(n)) : null }) });
    const body = el('tbody');
    const table = el('table', {}, el('thead', {}, el('tr', {},
      ...['visible', 'hidden', 'tool', 'kind', 'about', 'outcome'].map((t) => el('th', { scope: 'col', text: t })))), body);
    const requirement = el('select', { id: names.requirement, onchange: () => {
      const value = requirement.value;
      choose({ requirement: value.startsWith('=') ? { tool: value.slice(1) } : value });
    } });
    const offer = el('p', { role: 'status' });
    const problem = el('p', { role: 'alert' });
    const code = el('pre', { tabindex: '0', 'aria-label': 'Code for this policy' });
    root.append(el('div', { class: 'jnb-card', role: 'group', 'aria-label': 'Policy picker' },
      el('p', { class: 'jnb-title', text: 'What may this request use?' }),
      el('p', {}, only, el('label', { for: names.only, text: 'only the ticked tools (visible); else all but the hidden' })),
      el('div', { class: 'jnb-scroll' }, table),
      el('p', {}, el('label', { for: names.requirement, text: 'requirement ' }), requirement),
      offer, problem, code));

    const box = (name, key, checked, disabled, act) => el('td', {}, el('input', { type: 'checkbox', checked, disabled,
      'aria-label': `${name}: ${key}`, 'data-key': `${key} ${name}`, onchange: (event) => act(event.target.checked) }));
    const toggled = (list, name, on) => all().filter((one) => one === name ? on : list.includes(one));
    const row = (tool) => el('tr', {},
      box(tool.name, 'visible', state.visible === null || state.visible.includes(tool.name), state.visible === null,
        (on) => choose({ visible: toggled(state.visible, tool.name, on) })),
      box(tool.name, 'hidden', state.hidden.includes(tool.name), false,
        (on) => choose({ hidden: toggled(state.hidden, tool.name, on) })),
      el('th', { scope: 'row' }, el('code', { text: tool.name })), el('td', { text: tool.kind }),
      el('td', { text: tool.about }), el('td', { text: tool.offered ? '● offered' : `○ ${tool.why}` }));

    const paint = () => {
      const focused = root.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      only.checked = state.visible !== null;
      body.replaceChildren(...state.tools.map(row));
      const wanted = typeof state.requirement === 'object' ? `=${state.requirement.tool}` : state.requirement;
      requirement.replaceChildren(...['auto', 'required', 'disabled', ...all().map((n) => `=${n}`)].map((value) =>
        el('option', { value, text: value[0] === '=' ? `must call ${value.slice(1)}` : value, selected: value === wanted })));
      const offered = state.tools.filter((tool) => tool.offered).length;
      setText(offer, `${offered} of ${state.tools.length} offered, about ${state.tokens.toLocaleString('en')} tokens a model call`
        + ` · first ${state.first}${state.later ? ` · then ${state.later}` : ''}`);
      setText(problem, state.problem ? `✗ not taken: ${state.problem}` : '');
      problem.className = state.problem ? 'jnb-problem' : '';
      setText(code, state.code);
      if (focused) root.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    };
    return { all: paint, some: paint };
  },
};
