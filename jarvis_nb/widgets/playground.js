// The playground: a question above the picker, the run below.

const playground = {
  empty: () => ({ ...picker.empty(), live: run_view.empty() }),
  load(state, data) {
    Object.assign(state, data);
    state.live = run_view.empty();
    if (data.run) run_view.load(state.live, data.run);
  },
  change(state, change) {
    if (change.is === 'gate') state.gate = change.gate && state.gate ? Object.assign(state.gate, change.gate) : change.gate;
    else if (change.is === 'step') for (const one of change.changes) run_view.change(state.live, one);
    else if (change.is === 'playground') { playground.load(state, { ...state, ...change }); }
    else Object.assign(state, change);
  },

  draw(root, model, state) {
    const ids = { question: fresh('question'), engine: fresh('engine'), agent: fresh('agent') };
    const question = el('textarea', { id: ids.question, rows: '2' });
    const engine = el('select', { id: ids.engine });
    const agent = el('select', { id: ids.agent });
    const run = el('button', { type: 'button', class: 'jnb-main', text: 'Run', onclick: () => {
      if (!question.value.trim()) return question.focus();
      run.disabled = true;
      model.send({ op: 'ask', question: question.value, engine: engine.value, agent: agent.value });
    } });
    const failure = el('p', { role: 'alert' });
    const top = el('div', { class: 'jnb-card', role: 'group', 'aria-label': 'Playground' },
      el('label', { for: ids.question, text: 'Question' }), question,
      el('div', { class: 'jnb-row' }, el('span', {}, el('label', { for: ids.engine, text: 'engine ' }), engine),
        el('span', {}, el('label', { for: ids.agent, text: 'agent ' }), agent), run), failure);
    const middle = el('div');
    const live = el('div');
    const card = el('div', { class: 'jnb-static' });
    const gateAt = el('div');
    root.append(top, middle, live, gateAt, card);
    let asked = null;
    const paintGate = () => {
      if (!state.gate) { asked = null; gateAt.replaceChildren(); return; }
      if (!asked) asked = gate.draw(gateAt, model, state.gate);
      asked.all();
    };
    const pick = picker.draw(middle, model, state);
    let running = null;
    let about;

    const paint = () => {
      if (about !== state.question) { about = state.question; question.value = about || ''; }
      const options = (select, values) => {
        if (select.options.length !== values.length) select.replaceChildren(...values.map((v) => el('option', { value: v, text: v || 'as fits' })));
      };
      options(engine, state.engines || []);
      options(agent, state.agents || []);
      setText(failure, state.failure ? `✗ ${state.failure}` : '');
      failure.className = state.failure ? 'jnb-problem' : '';
      const done = Boolean(state.html || state.failure);
      run.disabled = Boolean(state.run) && !done;
      live.replaceChildren();
      running = null;
      if (state.run && !done) { running = run_view.draw(live, model, state.live); running.all(); }
      if (card.dataset.html !== state.html) { card.dataset.html = state.html || ''; card.innerHTML = state.html || ''; }  // our own card, escaped where it was made
    };
    return {
      all() { pick.all(); paint(); asked = null; gateAt.replaceChildren(); paintGate(); },
      some(changes) {
        for (const change of changes) {
          if (change.is === 'step') running?.some(change.changes);
          else if (change.is === 'gate') paintGate();
          else if (change.is === 'playground') { pick.all(); paint(); paintGate(); }
          else pick.all();
        }
      },
    };
  },
};
