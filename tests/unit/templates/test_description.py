"""Templates described as data and as JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.description import json_schema, summary
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.parameters import SECRET_REFERENCE

from .template_samples import ACCEPTED, OPTIONS, a_template

# Descriptions


def test_schema_has_types_defaults_choices_and_secrets(tmp_path: Path) -> None:
    options = OPTIONS | {"s": {"no_log": True, "required": True, "description": ["One.", "Two."]}, "n": {"type": "int", "default": 1}}
    schema = json_schema(a_template(tmp_path, options))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["s"]
    assert schema["additionalProperties"] is False
    of = schema["properties"]
    assert of["s"] == {"anyOf": [SECRET_REFERENCE, {"type": "string"}], "description": "One.\nTwo.", "writeOnly": True}
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"s": {"secretRef": {"name": "mine", "key": "k"}}}) and validator.is_valid({"s": "x"})
    assert not validator.is_valid({"s": {"secretRef": {"name": "mine", "key": "k", "namespace": "other"}}})
    assert not validator.is_valid({"s": "x", "text": {"secretRef": {"name": "mine", "key": "k"}}})
    assert of["n"] == {"type": "integer", "default": 1}
    assert of["size"] == {"type": "string", "enum": ["s", "m"]}
    assert of["sizes"] == {"type": "array", "items": {"type": "string", "enum": ["s", "m"]}}
    assert of["net"]["required"] == ["name"]
    assert of["rows"]["items"]["properties"] == {"id": {"type": "integer"}}
    assert of["anything"] == {}


def test_typed_values_fit_the_schema(tmp_path: Path) -> None:
    schema = jsonschema.Draft202012Validator(json_schema(a_template(tmp_path, OPTIONS)))
    for name, _given, wanted in ACCEPTED:
        schema.validate({name: wanted})


def test_summary_tells_each_parameter_with_the_same_keys(tmp_path: Path) -> None:
    shown = summary(a_template(tmp_path, OPTIONS))
    assert [parameter["name"] for parameter in shown["parameters"]] == list(OPTIONS)
    assert len({tuple(parameter) for parameter in shown["parameters"]}) == 1
    json.dumps(shown)
