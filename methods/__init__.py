"""The claims: the contract of an attribution method, the registry, and one file per method."""
