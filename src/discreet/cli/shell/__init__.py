"""A sitting at the terminal: questions in SQL, one after the other, each priced and agreed to before it is paid."""
