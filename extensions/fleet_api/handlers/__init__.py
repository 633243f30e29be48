"""One function for each operation: HTTP in terms of the logic, such as entity tags, idempotency keys and event streams."""
