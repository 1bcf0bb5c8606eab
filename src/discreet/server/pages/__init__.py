"""The pages of the server: made here, from templates, and readable without JavaScript."""
