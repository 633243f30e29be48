"""The environment that set-up makes can do what the collection stands on: run rulebooks, and pass credentials on by action group."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access

RULEBOOK = """
- name: Count
  hosts: all
  sources:
    - eda.builtin.range:
        limit: 3
  rules:
    - name: Second
      condition: event.i == 1
      action:
        run_playbook:
          name: {playbook}
    - name: Last
      condition: event.i == 2
      action:
        shutdown:
"""
HELLO = """
- name: Say it
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Hello
      ansible.builtin.debug:
        msg: "event {{ ansible_eda.event.i }} arrived"
"""
ASK = """
- name: Credentials are said once
  hosts: localhost
  gather_facts: false
  module_defaults:
    group/openfleet.clusters.kubernetes:
      kubeconfig: "{{ hub }}"
  tasks:
    - name: Ask
      kubernetes.core.k8s_info:
        kind: Namespace
        name: default
      register: answer
    - name: Show
      ansible.builtin.debug:
        msg: "{{ answer.resources[0].status.phase }}"
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_a_rulebook_runs_a_playbook(tmp_path: Path) -> None:
    (tmp_path / "hello.yml").write_text(HELLO)
    (tmp_path / "rulebook.yml").write_text(RULEBOOK.format(playbook=tmp_path / "hello.yml"))
    (tmp_path / "inventory.yml").write_text("all: {hosts: {localhost: {ansible_connection: local}}}\n")
    result = run("ansible-rulebook", "-r", str(tmp_path / "rulebook.yml"), "-i", str(tmp_path / "inventory.yml"))
    assert "event 1 arrived" in result.stdout, result.stdout + result.stderr


def test_the_action_group_passes_credentials_to_kubernetes_core(hub: Access, tmp_path: Path) -> None:
    (tmp_path / "ask.yml").write_text(ASK)
    result = run("ansible-playbook", str(tmp_path / "ask.yml"), "-e", f"hub={hub.kubeconfig}")
    assert result.returncode == 0, result.stdout + result.stderr
    assert '"msg": "Active"' in result.stdout
