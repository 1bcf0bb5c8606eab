"""What commands answer: frozen values whose fields are the JSON, and which people read as lines and tables."""
