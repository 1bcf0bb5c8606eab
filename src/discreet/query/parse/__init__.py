"""From SQL to a question: an allow-list, facts by rule, and refusals that say where, why and what to do instead."""
