"""How good a synthetic table is, and what it gives away: the custodian's report and the publishable one."""
