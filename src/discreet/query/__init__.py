"""Private SQL: a question becomes a closed tree, the tree a plan with a price, and the plan, once paid, an answer."""
