"""A stand-in for Automation Platform: the REST APIs of its controller, its EDA controller and its gateway, over a store in memory.

It behaves as AWX 24.6.1 does where its clients can see it. It has no database, no scheduler and no containers: a job is a run of
ansible-playbook, or ends at once, and a rulebook activation only walks through its states. Nothing here is AWX's or EDA's code.
"""
