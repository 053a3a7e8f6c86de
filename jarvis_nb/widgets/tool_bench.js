// The tool bench: a form from a schema, and what the model would read.

const tool_bench = {
  empty: () => ({ fields: [] }),
  load(state, data) { Object.assign(state, data); },
  change(state, change) { Object.assign(state, change); },

  draw(root, model, state) {
    const title = el('p', { class: 'jnb-title' });
    const about = el('p', { class: 'jnb-facts' });
    const form = el('div');
    const raw = fresh('raw');
    const json = el('textarea', { id: raw, class: 'jnb-code', rows: '3', spellcheck: 'false', placeholder: '{}' });
    const inputs = new Map();
    const status = el('p', { role: 'status' });
    const problem = el('p');
    const content = el('pre', { tabindex: '0', 'aria-label': 'What the model would read' });
    const test = el('pre', { tabindex: '0', 'aria-label': 'As a test' });
    const asTest = el('button', { type: 'button', text: 'As a test', onclick: () => model.send({ op: 'test' }) });
    const run = el('button', { type: 'button', class: 'jnb-main', text: 'Run', onclick: () => {
      const fields = Object.fromEntries([...inputs].map(([name, input]) => [name, input.value]));
      setText(status, '▶ running');
      model.send(json.value.trim() ? { op: 'run', json: json.value } : { op: 'run', fields });
    } });
    root.append(el('div', { class: 'jnb-card', role: 'group', 'aria-label': 'Tool bench' }, title, about, form,
      el('details', {}, el('summary', { text: 'or as JSON' }), el('label', { for: raw, text: 'Arguments as JSON, instead of the form' }), json),
      el('div', {}, run, asTest), status, problem, content, test));

    const field = (one) => {
      const id = fresh('field');
      const input = one.as === 'choice'
        ? el('select', { id }, el('option', { value: '', text: one.required ? 'choose' : `default ${one.default || ''}` }),
          ...one.options.map((option) => el('option', { value: option, text: option })))
        : el(one.as === 'json' ? 'textarea' : 'input', { id, placeholder: one.required ? '' : one.default || '', ...(one.as === 'json' ? { class: 'jnb-code', rows: '2' } : { type: 'text', size: '30' }) });
      inputs.set(one.name, input);
      const words = `${one.type}${one.required ? '' : ', optional'}${one.about ? ` · ${one.about}` : ''}`;
      return el('div', { class: 'jnb-row' }, el('label', { for: id }, el('code', { text: one.label })), input, el('span', { class: 'jnb-facts', text: words }));
    };
    const paint = () => {
      setText(title, state.name || '');
      setText(about, `${state.about || ''}${state.confirm ? ' · a model has to ask a person; here you run it yourself' : ''}`);
      if (form.dataset.of !== state.name) {
        form.dataset.of = state.name;
        inputs.clear();
        form.replaceChildren(...state.fields.map(field));
      }
      setText(status, state.status ? `${state.status === 'ok' ? '✓ ok' : `✗ ${state.status}`}: the model would read` : 'not run yet');
      setText(problem, state.problem ? `✗ ${state.problem}` : '');
      problem.className = state.problem ? 'jnb-problem' : '';
      setText(content, state.content || '');
      content.hidden = !state.content;
      setText(test, state.test || '');
      test.hidden = !state.test;
      asTest.disabled = !state.status;
    };
    return { all: paint, some: paint };
  },
};
