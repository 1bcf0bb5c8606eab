"""Planning: a question and a spend become a plan with a price, and the plan, once paid, a table of answers."""
