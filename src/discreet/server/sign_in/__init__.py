"""Ways in beside the password: a provider (OpenID Connect), and codes that a person allows for a notebook."""
