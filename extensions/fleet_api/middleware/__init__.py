"""What holds for every request: operation id, log, metrics, limits, authentication, rate limit, security headers."""
