"""Access to the home cluster and to token issuers: informers, writes as the caller, reviews, keys."""
