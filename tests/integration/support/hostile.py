"""Orders and bodies of webhooks that try to reach a shell, a template or a parser, and that no tenant would write by mistake."""

from __future__ import annotations

import json
import random

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from .orders import order

HOSTILE = ["{{ 7*7 }}", "{% raw %}", "{{ lookup('pipe', 'touch was-here') }}", "$(touch was-here)", "`id`", "'\"; x", "\u202e\u0001x", "💥"]


def hostile_orders(namespace: str) -> list[Object]:
    """For each text an order with it in its parameters, one with it as a class, and one of a template that does not exist."""
    made = []
    for number, text in enumerate(HOSTILE):
        parameters = json.dumps({text: text, "pull_secret": text}) if number % 2 else text * 1000
        made += [order(namespace, f"{kind}-{number}") for kind in ("hostile", "class", "template")]
        made[-3]["metadata"]["annotations"] = {"note": text * 100}
        made[-3]["spec"]["templateParameters"] = parameters
        made[-2]["spec"]["nodeRequests"][0]["resourceClass"] = text
        made[-1]["spec"]["templateID"] = f"no_such_{number}"
    return made


def hostile_body(dice: random.Random, namespace: str) -> object:
    """The body of a webhook: no JSON, JSON of another shape, or an order whose parts are hostile."""
    text = dice.choice(HOSTILE)
    named = {"name": f"hostile-{dice.randrange(len(HOSTILE))}", "namespace": namespace}
    nested: object = text
    for _level in range(dice.choice((1, 10, 200))):
        nested = {text: nested} if dice.random() < 0.5 else [nested]
    return dice.choice(
        [
            text.encode("utf-8", "surrogatepass"),
            dice.randbytes(dice.randrange(1000)),
            b"[" * dice.choice((1, 10**5)),
            json.dumps(nested)[: dice.randrange(1, 50)].encode(),
            nested,
            {"metadata": nested},
            {"metadata": {"name": nested, "namespace": namespace}},
            {"metadata": {"name": text, "namespace": text}},
            {"metadata": named, "event": nested, "meta": {"hosts": HOSTILE}, "spec": nested},
            {"metadata": named | {"labels": nested, "uid": text}},
            {"payload": {"metadata": named}, "meta": nested},
            {"metadata": {"name": "x" * dice.choice((10, 300, 10**6)), "namespace": namespace}},
            None,
        ]
    )
