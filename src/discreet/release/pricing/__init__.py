"""What a release costs and how exact it will be, from public facts only: read, split, price, and say it to people."""
