"""The server: an HTTP API and pages on which several people ask, under one budget (`discreet serve`)."""
