"""The REST facade of a fleet: FastAPI on uvicorn, stateless. Reads come from informers, writes go to the home cluster as the caller.

Layers: routes -> middleware -> handlers -> logic -> stores. Inner layers know nothing of outer ones; import-linter checks it.
"""
