"""The outermost layer: paths, parameters and the OpenAPI document. A route calls one handler."""
