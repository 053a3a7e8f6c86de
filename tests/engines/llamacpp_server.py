"""A llama.cpp server on loopback from the xllamacpp wheel: ``python llamacpp_server.py MODEL PORT KEY``.

It serves until its standard input ends. It runs in a process of its own, since a server that is destroyed soon
after it was made can hang (xllamacpp 2026.10), and a process can always be ended.
"""

from __future__ import annotations

import sys

import xllamacpp

TEMPLATE = """{%- if tools %}<|im_start|>system
Tools:
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
To call one write <tool_call>{"name": "...", "arguments": {...}}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" %}<|im_start|>user
Result: {{ message.content }}<|im_end|>
{% elif message.tool_calls %}<|im_start|>assistant
{% for call in message.tool_calls %}<tool_call>{"name": "{{ call.function.name }}", "arguments": \
{{ call.function.arguments | tojson }}}</tool_call>{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""ChatML with tools: the model's own template has none, and then the server takes no call out of its text."""


def main(model: str, port: str, key: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"smollm2"}
    params.n_ctx, params.n_parallel = 2048, 2
    params.kv_unified = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib, params.warmup, params.verbosity = 0, False, -1
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], int(port), [key]
    params.cors_origins, params.ui, params.endpoint_slots, params.offline = "", False, False, True
    params.use_jinja, params.chat_template = True, TEMPLATE
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
