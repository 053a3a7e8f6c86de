// The approval gate: what would run, and three answers.

const gate = {
  empty: () => ({}),
  load(state, data) { Object.assign(state, data); },
  change(state, change) { Object.assign(state, change); },

  draw(root, model, state) {
    const title = el('p', { class: 'jnb-title' });
    const about = el('p', { class: 'jnb-facts' });
    const names = { arguments: fresh('arguments'), reason: fresh('reason') };
    const args = el('textarea', { id: names.arguments, class: 'jnb-code', rows: '4', spellcheck: 'false' });
    const reason = el('input', { id: names.reason, type: 'text', size: '40' });
    const problem = el('p', { role: 'alert' });
    const status = el('p', { role: 'status' });
    let original = '';
    const answer = (decision) => () => model.send({ op: 'answer', decision, reason: reason.value,
      arguments: args.value === original ? null : args.value });
    const buttons = [
      el('button', { type: 'button', class: 'jnb-main', text: 'Approve', onclick: answer('approve') }),
      el('button', { type: 'button', text: 'Always in this session', onclick: answer('always') }),
      el('button', { type: 'button', text: 'Deny', onclick: answer('deny') }),
    ];
    const form = el('div', {},
      el('label', { for: names.arguments, text: 'Arguments, as JSON: edit them if need be' }), args,
      el('div', { class: 'jnb-row' }, ...buttons,
        el('span', {}, el('label', { for: names.reason, text: 'Reason, if you deny: the model reads it ' }), reason)));
    const card = el('div', { class: 'jnb-card jnb-gate', role: 'group' }, title, about, form, problem, status);
    root.append(card);
    const paint = () => {
      const open = state.status === 'waiting';
      setText(title, open ? `‖ May ${state.name} run?` : state.name || '');
      setText(about, state.description || '');
      card.setAttribute('aria-label', `Approval of ${state.name}`);
      if (original !== state.arguments) {
        original = state.arguments || '';
        args.value = original;
        args.rows = Math.min(16, original.split('\n').length);
      }
      setText(problem, state.problem ? `✗ ${state.problem}` : '');
      problem.className = state.problem ? 'jnb-problem' : '';
      setText(status, open ? '' : state.status);
      form.hidden = !open;
    };
    return { all: paint, some: paint };
  },
};
